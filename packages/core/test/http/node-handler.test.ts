import { AsyncLocalStorage } from "node:async_hooks";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { connect as connectHttp2, createServer as createHttp2Server } from "node:http2";
import { connect } from "node:net";
import type { AddressInfo } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { createNodeHandler } from "../../src/http/node-handler.js";
import type { NodeHandlerOptions } from "../../src/http/node-handler.js";
import type { ServedGateway } from "../../src/http/served-gateway.js";
import { abortSignalOf, type GatewayRequest } from "../../src/request.js";
import { latch } from "../../src/testing/contract/latch.js";
import { ask, headerOf, RawClient } from "../../src/testing/contract/raw-client.js";
import type { RawRequest } from "../../src/testing/contract/raw-client.js";
import { ManualClock } from "../../src/testing/manual-clock.js";
import { anyFailure, failing, releasing, ScriptedBody, ScriptedGateway, silent } from "./scripted-gateway.js";
import { serving } from "./serving.js";

const messages: RawRequest = { path: "/v1/messages", body: "{}", headers: { "content-type": "application/json" } };

type Host = (handle: (next?: (error?: unknown) => void) => void, req: IncomingMessage, res: ServerResponse) => void;

/** @param host what is around the handler; default: nothing */
function serve(
  gateway: ServedGateway,
  options: NodeHandlerOptions<IncomingMessage> = {},
  host: Host = (handle) => handle(),
): Promise<string> {
  const handler = createNodeHandler(gateway, options);
  return serving((req, res) => host((next) => handler(req, res, next), req, res));
}

describe("a released answer", () => {
  it("reaches the client byte for byte, with the headers of the gateway", async () => {
    const url = await serve(
      releasing(new ScriptedBody().push("event: a\n\n").push("b").finish(), { "x-tfy-attempts": "1" }),
    );
    const answer = await ask(url, messages);
    expect(answer).toMatchObject({ status: 200, complete: true });
    expect(answer.body.toString()).toBe("event: a\n\nb");
    expect(headerOf(answer, "x-tfy-attempts")).toBe("1");
  });

  it("sends the head and the first bytes in one packet", async () => {
    const url = await serve(releasing(new ScriptedBody().push("first").push(" second")));
    const client = await RawClient.send(url, messages);
    const [packet] = (await once(client.socket, "data")) as [Buffer];
    expect(packet.toString()).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n5\r\nfirst\r\n7\r\n second\r\n$/);
  });

  it("passes chunks on as they come", async () => {
    const body = new ScriptedBody();
    const client = await RawClient.send(await serve(releasing(body)), messages);
    for (const text of ["one", "two", "three"]) {
      body.push(text);
      await client.waitFor(text);
    }
    expect(body.cancelled).toBeUndefined();
  });

  it("keeps the headers that the host set before", async () => {
    const url = await serve(
      releasing(new ScriptedBody().finish(), { "content-type": "text/event-stream" }),
      {},
      (handle, _, res) => {
        res.setHeader("vary", "Origin");
        res.setHeader("set-cookie", ["a=1", "b=2"]);
        handle();
      },
    );
    const answer = await ask(url, messages);
    expect(headerOf(answer, "vary")).toBe("Origin");
    expect(answer.headers.filter(([name]) => name === "set-cookie").map(([, value]) => value)).toEqual(["a=1", "b=2"]);
  });

  it("stops the body while the client does not read, and goes on when it does", async () => {
    const body = new ScriptedBody();
    const client = await RawClient.send(await serve(releasing(body)), messages);
    client.socket.pause();
    const part = Buffer.alloc(65_536, "x");
    await body.piped;
    let parts = 0;
    for (; !body.full && parts < 1000; parts += 1) {
      body.push(part);
      await new Promise((resolve) => setImmediate(resolve));
    }
    expect(parts).toBeLessThan(1000);
    body.push("the rest");
    client.socket.resume();
    await body.taken();
    body.finish();
    const answer = await client.answer();
    expect(answer).toMatchObject({ complete: true });
    expect(answer.body).toHaveLength(parts * part.length + "the rest".length);
  });

  it("calls flush() after each write where compression added it", async () => {
    let flushed = 0;
    const body = new ScriptedBody().push("x");
    const url = await serve(releasing(body), {}, (handle, _, res) => {
      Object.assign(res, { flush: () => (flushed += 1) });
      handle();
    });
    const client = await RawClient.send(url, messages);
    await client.waitFor("x");
    expect(flushed).toBe(1);
  });
});

describe("a broken stream", () => {
  it("is sent to its last byte and never ended", async () => {
    const body = new ScriptedBody().push("data: 1\n\n").push("event: error\n\n").fail();
    const answer = await ask(await serve(releasing(body)), messages);
    expect(answer.complete).toBe(false);
    expect(answer.body.toString()).toBe("data: 1\n\nevent: error\n\n");
  });

  it("is flushed to a slow client before the connection is destroyed", async () => {
    const size = 20_000_000;
    const body = new ScriptedBody();
    const client = await RawClient.send(await serve(releasing(body)), messages);
    client.socket.pause();
    await body.piped;
    body.push(Buffer.alloc(size)).push("error").fail();
    client.socket.resume();
    const answer = await client.answer();
    expect(answer.complete).toBe(false);
    expect(answer.body).toHaveLength(size + "error".length);
  });

  it("resets an HTTP/1.0 client, for which a closed connection is a complete answer", async () => {
    const body = new ScriptedBody().push("half");
    const url = await serve(releasing(body));
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.write("POST /v1/messages HTTP/1.0\r\ncontent-length: 2\r\n\r\n{}");
    while (!String((await once(socket, "data"))[0]).includes("half"));
    const broken = once(socket, "error");
    body.fail();
    expect(((await broken)[0] as NodeJS.ErrnoException).code).toBe("ECONNRESET");
  });

  it("is destroyed when the client does not take what is left", async () => {
    const clock = new ManualClock();
    const body = new ScriptedBody();
    const client = await RawClient.send(await serve(releasing(body), { clock }), messages);
    client.socket.pause();
    await body.piped;
    body.push(Buffer.alloc(50_000_000)).fail();
    await new Promise((resolve) => setTimeout(resolve, 100));
    for (let look = 0; look < 8; look += 1) await clock.advance(15_000);
    client.socket.resume();
    const answer = await client.answer();
    expect(answer.complete).toBe(false);
    expect(answer.body.length).toBeLessThan(50_000_000);
    expect(clock.pending).toBe(0);
  });
});

describe("a failed answer", () => {
  it("reaches the client as a whole", async () => {
    const url = await serve(failing(anyFailure));
    const answer = await ask(url, messages);
    expect(answer).toMatchObject({ status: 502, complete: true });
    expect(headerOf(answer, "content-type")).toBe("application/json");
    expect(headerOf(answer, "content-length")).toBe(String(answer.body.length));
  });

  it("is a 413 that the client can read while it still sends", async () => {
    const gateway = silent();
    const url = await serve(gateway);
    const client = await RawClient.send(url, {
      ...messages,
      body: undefined,
      headers: { "transfer-encoding": "chunked" },
    });
    const chunk = `4000\r\n${"x".repeat(0x4000)}\r\n`;
    for (let sent = 0; sent < 200; sent += 1) client.socket.write(chunk);
    client.socket.write("0\r\n\r\n");
    const answer = await client.answer();
    expect(answer).toMatchObject({ status: 413, complete: true });
    expect(headerOf(answer, "connection")).toBe("close");
    expect(gateway.requests).toEqual([]);
  });

  it("ends a 413 when the client never stops", async () => {
    const clock = new ManualClock();
    const url = await serve(silent(), { clock });
    const client = await RawClient.send(url, { path: "/v1/messages", headers: { "content-length": "999999" } });
    await client.waitFor("request_too_large");
    await clock.advance(4_999);
    expect(clock.pending).toBe(1);
    await clock.advance(1);
    await client.closed;
    expect(clock.pending).toBe(0);
  });

  it("is a 400 for two Host headers", async () => {
    const gateway = silent();
    const answer = await ask(await serve(gateway), { ...messages, headers: { ...messages.headers, Host: "other" } });
    expect(answer.status).toBe(400);
    expect(gateway.refused.map(({ code }) => code)).toEqual(["duplicate_host"]);
  });
});

describe("a client that leaves", () => {
  it("aborts the request while it waits", async () => {
    const gateway = silent();
    const client = await RawClient.send(await serve(gateway), messages);
    await until(() => gateway.requests.length === 1);
    client.leave();
    await once(abortSignalOf(gateway.requests[0].signal), "abort");
  });

  it("cancels a released body at once", async () => {
    const body = new ScriptedBody().push("x");
    const client = await RawClient.send(await serve(releasing(body)), messages);
    await client.waitFor("x");
    client.leave();
    await body.left;
    expect(body.cancelled).toBe("client-abort");
  });

  it("is not asked for when it left before", async () => {
    const gateway = silent();
    const done = latch();
    const url = await serve(gateway, {}, (handle, _, res) => {
      res.once("close", () => {
        handle();
        done.open();
      });
    });
    (await RawClient.send(url, messages)).leave();
    await done.opened;
    expect(gateway.requests).toEqual([]);
  });

  it("is not mistaken for one that has sent its body", async () => {
    const body = new ScriptedBody();
    const url = await serve(releasing(body), {}, (handle, req) => {
      const chunks: Buffer[] = [];
      req.on("data", (chunk: Buffer) => chunks.push(chunk));
      req.on("close", () => {
        Object.assign(req, { body: Buffer.concat(chunks) });
        handle();
      });
    });
    const client = await RawClient.send(url, messages);
    await body.piped;
    body.push("x").finish();
    expect(await client.answer()).toMatchObject({ complete: true });
  });

  it("does not cancel a body that has ended", async () => {
    const body = new ScriptedBody().push("x").finish();
    await ask(await serve(releasing(body)), messages);
    expect(body.cancelled).toBeUndefined();
  });
});

describe("the host", () => {
  it("gets what is not the gateway's, untouched", async () => {
    const gateway = silent();
    const url = await serve(gateway, {}, (handle, req, res) =>
      handle(() => res.end(`${req.url} ${res.listenerCount("close")} ${req.readableFlowing}`)),
    );
    const answer = await ask(url, { ...messages, path: "/v1/other" });
    expect(answer.body.toString()).toMatch(/^\/v1\/other \d null$/);
    expect(gateway.requests).toEqual([]);
  });

  it("is not needed: without next() the rest is a 404", async () => {
    expect((await ask(await serve(silent()), { path: "/" })).status).toBe(404);
  });

  it("gets what identify throws, once, and the client nothing of it", async () => {
    const errors: unknown[] = [];
    const mine = new Error("mine");
    const identify = async (): Promise<never> => Promise.reject(mine);
    const url = await serve(silent(), { identify }, (handle, _, res) =>
      handle((error) => {
        errors.push(error);
        res.writeHead(500).end("host");
      }),
    );
    expect((await ask(url, messages)).body.toString()).toBe("host");
    expect(errors).toEqual([mine]);
  });

  it.each([401, 403] as const)("rejects a caller with %s before its body is read", async (reject) => {
    const gateway = silent();
    const answer = await ask(await serve(gateway, { identify: () => ({ reject }) }), messages);
    expect(answer.status).toBe(reject);
    expect(gateway.requests).toEqual([]);
  });

  it("keeps the connection of a caller it rejects", async () => {
    const url = await serve(silent(), { identify: () => ({ reject: 401 }) });
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    const request = "POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\n{}";
    for (let turn = 0; turn < 2; turn += 1) {
      socket.write(request);
      expect(String((await once(socket, "data"))[0])).toMatch(/^HTTP\/1\.1 401 /);
    }
  });

  it("is asked with the request, and its answer is handed on", async () => {
    const gateway = failing(anyFailure);
    const identity = { subject: "ada", metadata: { team: "a" } };
    const url = await serve(gateway, { identify: (req) => (req.headers["x-user"] === "ada" ? identity : undefined) });
    await ask(url, { ...messages, headers: { ...messages.headers, "x-user": "ada" } });
    expect(gateway.requests[0]?.identity).toEqual(identity);
  });

  it("has its context kept, by each of many requests that come at once", async () => {
    const storage = new AsyncLocalStorage<string>();
    const gateway = failing(anyFailure);
    const stored: string[] = [];
    const asked: ServedGateway = Object.assign(Object.create(gateway), {
      handle: (request: GatewayRequest) => {
        stored.push(`${request.headers["x-name"] as string}: ${storage.getStore()}`);
        return gateway.handle(request);
      },
    });
    const url = await serve(asked, {}, (handle, { headers }) =>
      storage.run(`stored by ${headers["x-name"] as string}`, handle),
    );
    const names = ["ada", "bob", "cy", "dan", "eve"];
    const named = names.map((name) => ({ ...messages, headers: { ...messages.headers, "x-name": name } }));
    await Promise.all(named.map((request) => ask(url, request)));
    expect(stored.toSorted()).toEqual(names.map((name) => `${name}: stored by ${name}`));
  });

  it("keeps a response that it has begun meanwhile", async () => {
    const body = new ScriptedBody().push("ours");
    const gateway = releasing(body);
    let begin = (): void => undefined;
    const asked: ServedGateway = Object.assign(Object.create(gateway), {
      handle: (request: GatewayRequest) => (begin(), gateway.handle(request)),
    });
    const url = await serve(asked, {}, (handle, _, res) => {
      begin = () => void res.write("theirs");
      handle();
    });
    const client = await RawClient.send(url, messages);
    await body.left;
    expect(client.bytes.toString()).not.toContain("ours");
  });

  it("asks for nothing where it has begun a response before the body was read", async () => {
    const gateway = releasing(new ScriptedBody().push("ours"));
    const url = await serve(gateway, {}, (handle, req, res) => {
      handle();
      res.write("theirs");
      req.on("end", () => res.end());
    });
    expect((await ask(url, messages)).body.toString()).toBe("theirs");
    expect(gateway.requests).toEqual([]);
  });

  it("serves below a prefix, and nothing else", async () => {
    const gateway = failing(anyFailure);
    const url = await serve(gateway, { prefix: "/llm" });
    expect((await ask(url, { ...messages, path: "/llm/messages?beta=true" })).status).toBe(502);
    expect((await ask(url, messages)).status).toBe(404);
    expect(gateway.requests.map((request) => [request.url, request.mounted])).toEqual([["/messages?beta=true", true]]);
  });
});

describe("a bug of the gateway", () => {
  const throwing = (): ScriptedGateway =>
    new ScriptedGateway(async function* () {
      yield { type: "attempt-start", attempt: 1, target: "a/m" };
      throw new Error("a bug");
    });

  it("goes to next()", async () => {
    const url = await serve(throwing(), {}, (handle, _, res) => handle((error) => res.end(String(error))));
    expect((await ask(url, messages)).body.toString()).toBe("Error: a bug");
  });

  it("is a 500 in the client's protocol where there is no next()", async () => {
    const answer = await ask(await serve(throwing()), messages);
    expect(answer.status).toBe(500);
    expect(answer.body.toString()).toContain("internal_error");
    expect(answer.body.toString()).not.toContain("a bug");
  });

  it("is an end of the events without an answer", async () => {
    const gateway = new ScriptedGateway(async function* () {});
    expect((await ask(await serve(gateway), messages)).status).toBe(500);
  });

  it("is a header that cannot be sent: the body is cancelled", async () => {
    const body = new ScriptedBody();
    expect((await ask(await serve(releasing(body, { "x-bad": "a\nb" })), messages)).status).toBe(500);
    expect(body.cancelled).toBe("client-abort");
  });
});

describe("over HTTP/2", () => {
  async function open(gateway: ServedGateway) {
    const handler = createNodeHandler(gateway);
    const server = createHttp2Server((req, res) =>
      handler(req as unknown as IncomingMessage, res as unknown as ServerResponse),
    );
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const session = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    onTestFinished(() => {
      session.destroy();
      server.close();
    });
    const stream = session.request({ ":method": "POST", ":path": "/v1/messages", "content-type": "application/json" });
    stream.end("{}");
    let text = "";
    stream.setEncoding("utf8").on("data", (data: string) => (text += data));
    return { stream, text: () => text };
  }

  it("an answer is passed on", async () => {
    const { stream, text } = await open(releasing(new ScriptedBody().push("abc").finish()));
    await once(stream, "end");
    expect(text()).toBe("abc");
    expect(stream.rstCode).toBe(0);
  });

  it("a broken stream is sent to its last byte and ends in an error", async () => {
    const { stream, text } = await open(releasing(new ScriptedBody().push(`${"x".repeat(1_000_000)}error`).fail()));
    await expect(once(stream, "end")).rejects.toThrow("INTERNAL_ERROR");
    expect(text()).toHaveLength(1_000_005);
  });

  it("a client that cancels aborts the request", async () => {
    const body = new ScriptedBody().push("x");
    const { stream } = await open(releasing(body));
    await once(stream, "data");
    stream.close();
    await body.left;
    expect(body.cancelled).toBe("client-abort");
  });

  it("a failure carries no connection header", async () => {
    const { stream } = await open(failing(anyFailure));
    const [headers] = (await once(stream, "response")) as [Record<string, unknown>];
    expect(headers[":status"]).toBe(502);
    expect(headers).not.toHaveProperty("connection");
  });
});

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setImmediate(resolve));
}
