import { describe, expect, it, onTestFinished, vi } from "vitest";
import { UndiciCall } from "../../src/upstream/call.js";
import { ConnectionPool } from "../../src/upstream/connection-pool.js";
import { LocalEnds } from "../../src/upstream/local-ends.js";
import type { UpstreamRequest } from "../../src/upstream/upstream.js";
import { okAnswer, rawServer, type RawConnection } from "./raw-server.js";
import { exchange, post, Recorder, settle, testClient } from "./recorder.js";

/** A pool, and what sends over it as the client does. */
function testPool(origin: string): { pool: ConnectionPool; send: (overrides?: Partial<UpstreamRequest>) => Sent } {
  const client = { pipelining: 1, keepAliveTimeout: 10_000 };
  const pool = new ConnectionPool({ origin, connectTimeoutMs: 5_000, ttlMs: 300_000, client, ends: new LocalEnds() });
  onTestFinished(() => pool.destroy());
  const sender = { canResend: false, resend: () => undefined };
  return {
    pool,
    send: (overrides) => {
      const recorder = new Recorder();
      const call = new UndiciCall(post(origin, overrides), recorder, sender);
      const connection = pool.take();
      call.runOn(connection);
      if (call.refused) pool.settle(connection);
      return { call, recorder };
    },
  };
}

interface Sent {
  readonly call: UndiciCall;
  readonly recorder: Recorder;
}

/** Answers when the test says so. */
function heldServer(): ReturnType<typeof rawServer> {
  return rawServer(() => undefined);
}

/** By the index of the request: the first is refused before it is queued, the second when it is written. */
const refusals: Readonly<Record<number, Partial<UpstreamRequest>>> = {
  3: { headers: ["x", "\n"] },
  4: { headers: ["content-length", "7"] },
};

const answer = ({ socket }: RawConnection): boolean => socket.write(okAnswer);

describe("a request", () => {
  it("gets the connection that was used last", async () => {
    const server = await heldServer();
    const { send } = testPool(server.origin);
    const sent = [send(), send(), send()];
    await Promise.all(sent.map(({ recorder }) => recorder.called("connected")));
    for (const index of [2, 0, 1]) {
      answer(await server.connection(index));
      await settle();
    }
    for (const index of [1, 0, 2]) {
      const { requests } = await server.connection(index);
      send();
      await settle();
      expect((await server.connection(index)).requests).toBe(requests + 1);
    }
    expect(server.connections).toHaveLength(3);
  });

  it("never shares a connection with another, whatever becomes of them", async () => {
    const answered = new Map<RawConnection, number>();
    const atOnce: number[] = [];
    const server = await rawServer((connection, request) => {
      atOnce.push(request - (answered.get(connection) ?? 0));
      setImmediate(() => {
        answered.set(connection, request);
        answer(connection);
      });
    });
    const { send } = testPool(server.origin);
    const sent: Sent[] = [];
    for (let index = 0; index < 300; index += 1) {
      const one = send(refusals[index % 7] ?? {});
      if (index % 7 === 5) one.call.abort();
      else if (index % 7 === 6) setImmediate(() => one.call.abort());
      else sent.push(one);
      if (index % 3 === 0) await settle(1);
    }
    await Promise.all(sent.map(({ recorder }) => recorder.done));
    expect(Math.max(...atOnce)).toBe(1);
    expect(sent.filter(({ recorder }) => recorder.body === "ok")).toHaveLength(129);
  });
});

it("the pool knows a connection whose socket was replaced under a request that waited for it", async () => {
  const server = await rawServer(answer);
  const { pool, send } = testPool(server.origin);
  await send().recorder.done;
  await settle();
  const { recorder } = send();
  (await server.connection(0)).socket.end();
  await recorder.done;
  expect([recorder.body, server.connections.length, pool.size]).toEqual(["ok", 2, 1]);
});

describe("the pool forgets a connection", () => {
  it("that the provider closed while it was idle", async () => {
    const server = await rawServer(answer);
    const { pool, send } = testPool(server.origin);
    await Promise.all([send().recorder.done, send().recorder.done]);
    await settle();
    expect(pool.size).toBe(2);
    (await server.connection(0)).socket.end();
    await settle();
    expect(pool.size).toBe(1);
    await send().recorder.done;
    expect((await server.connection(1)).requests).toBe(2);
  });

  it("whose request was aborted, at any time", async () => {
    const server = await heldServer();
    const { pool, send } = testPool(server.origin);
    send().call.abort();
    const { call, recorder } = send();
    await recorder.called("connected");
    call.abort();
    await settle();
    expect(pool.size).toBe(0);
  });

  it("that could not be established", async () => {
    const { pool, send } = testPool("http://127.0.0.1:1");
    const { recorder } = send();
    await recorder.done;
    await settle();
    expect(recorder.calls).toEqual(["error"]);
    expect(pool.size).toBe(0);
  });

  it("that was made for a request which was refused", async () => {
    const { pool, send } = testPool("http://127.0.0.1:1");
    const { recorder } = send({ headers: ["x", "\n"] });
    expect(pool.size).toBe(0);
    await recorder.done;
  });

  it("that an answer was not to be kept alive on", async () => {
    const server = await rawServer(({ socket }) => socket.end("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nok"));
    const { pool, send } = testPool(server.origin);
    await send().recorder.done;
    await settle();
    expect(pool.size).toBe(0);
  });
});

describe("an idle connection", () => {
  it("is closed after keepAliveTimeoutMs", async () => {
    const server = await rawServer(answer);
    const client = testClient({ keepAliveTimeoutMs: 20 });
    await exchange(client, post(server.origin));
    await (
      await server.connection(0)
    ).closed;
    await exchange(client, post(server.origin));
    expect(server.connections).toHaveLength(2);
  });

  it("is replaced once it is older than connectionTtlMs, and closed", async () => {
    const server = await rawServer(answer);
    const client = testClient({ connectionTtlMs: 1_000 });
    const start = Math.floor(performance.now());
    const clock = vi.spyOn(performance, "now").mockReturnValue(start);
    await exchange(client, post(server.origin));
    await settle();
    clock.mockReturnValue(start + 1_000);
    await exchange(client, post(server.origin));
    await settle();
    expect(server.connections).toHaveLength(1);
    clock.mockReturnValue(start + 1_001);
    await exchange(client, post(server.origin));
    expect(server.connections).toHaveLength(2);
    await (
      await server.connection(0)
    ).closed;
  });
});
