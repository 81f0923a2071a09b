import { Agent } from "undici";
import { describe, expect, it, onTestFinished } from "vitest";
import type { RawConnection } from "./raw-server.js";
import { okAnswer, okHead, rawServer } from "./raw-server.js";
import { exchange, post, settle, testClient } from "./recorder.js";

/** Answers the first request of a connection, and does `then` at the second one of the first connection. */
const staleServer = (then: (connection: RawConnection) => void): ReturnType<typeof rawServer> =>
  rawServer((connection, request, index) => {
    if (request === 2 && index === 0) then(connection);
    else connection.socket.write(okAnswer);
  });

const endings: [string, (connection: RawConnection) => void][] = [
  ["closes", ({ socket }) => socket.end()],
  ["resets", ({ socket }) => socket.resetAndDestroy()],
];

describe("a keep-alive connection that goes stale", () => {
  it.each(endings)("is replaced unseen when the provider %s it at the next request", async (_, then) => {
    const server = await staleServer(then);
    const client = testClient();
    await exchange(client, post(server.origin));
    await settle();
    const recorder = await exchange(client, post(server.origin));
    expect(recorder.calls).toEqual(["connected", "head", "data", "end"]);
    expect(server.connections.map(({ requests }) => requests)).toEqual([2, 1]);
  });

  it.each(endings)("is replaced unseen when the provider %s it before the next request", async (_, then) => {
    const server = await rawServer(({ socket }) => socket.write(okAnswer));
    const client = testClient();
    await exchange(client, post(server.origin));
    await settle();
    const pending = exchange(client, post(server.origin));
    then(await server.connection(0));
    const recorder = await pending;
    expect(recorder.calls).toEqual(["connected", "head", "data", "end"]);
    expect(server.requests).toBeLessThanOrEqual(3);
  });

  it("is replaced once: a second loss is an error", async () => {
    const server = await rawServer((connection, request, index) => {
      if (index === 0 && request === 1) connection.socket.write(okAnswer);
      else connection.socket.resetAndDestroy();
    });
    const client = testClient();
    await exchange(client, post(server.origin));
    await settle();
    const recorder = await exchange(client, post(server.origin));
    expect(recorder.calls).toEqual(["connected", "error"]);
    expect(server.requests).toBe(3);
  });

  it("closes the connection of the second try when it is over", async () => {
    const server = await staleServer(({ socket }) => socket.end());
    const client = testClient();
    await exchange(client, post(server.origin));
    await settle();
    await exchange(client, post(server.origin));
    await (
      await server.connection(1)
    ).closed;
  });

  it("is not replaced once a byte of the answer came", async () => {
    const server = await staleServer(({ socket }) => socket.end("HTTP/1.1 20"));
    const client = testClient();
    await exchange(client, post(server.origin));
    await settle();
    const recorder = await exchange(client, post(server.origin));
    expect(recorder.calls).toEqual(["connected", "error"]);
    expect(server.requests).toBe(2);
  });

  it("is not replaced after the head", async () => {
    const server = await staleServer(({ socket }) => socket.end(`${okHead}content-length: 9\r\n\r\nab`));
    const client = testClient();
    await exchange(client, post(server.origin));
    await settle();
    const recorder = await exchange(client, post(server.origin));
    expect(recorder.calls).toEqual(["connected", "head", "data", "error"]);
    expect(server.requests).toBe(2);
  });

  it("is not replaced under an injected dispatcher", async () => {
    const server = await staleServer(({ socket }) => socket.end());
    const dispatcher = new Agent();
    onTestFinished(() => dispatcher.destroy());
    const client = testClient({ dispatcher });
    await exchange(client, post(server.origin));
    await settle();
    const recorder = await exchange(client, post(server.origin));
    expect(recorder.calls).toEqual(["connected", "error"]);
  });

  it("is left to the abort of its call", async () => {
    const server = await staleServer(() => undefined);
    const client = testClient();
    await exchange(client, post(server.origin));
    await settle();
    const { promise, calls } = abortOnReuse();
    await promise;
    await settle();
    expect(calls).toEqual(["connected"]);
    expect(server.connections).toHaveLength(1);

    function abortOnReuse(): { promise: Promise<void>; calls: string[] } {
      const names: string[] = [];
      const note = (name: string) => () => void names.push(name);
      const call = client.send(post(server.origin), {
        onConnected: () => {
          names.push("connected");
          setImmediate(() => call.abort());
        },
        onHead: note("head"),
        onData: note("data"),
        onEnd: note("end"),
        onError: note("error"),
      });
      const [first] = server.connections;
      return { promise: first?.closed ?? Promise.reject(new Error("no connection")), calls: names };
    }
  });
});

it.each(endings)("a fresh connection that the provider %s is an error after one request", async (_, then) => {
  const server = await rawServer(then);
  const recorder = await exchange(testClient(), post(server.origin));
  expect(recorder.calls).toEqual(["connected", "error"]);
  expect(server.requests).toBe(1);
});
