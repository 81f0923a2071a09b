import { AsyncLocalStorage } from "node:async_hooks";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { once } from "node:events";
import { Agent } from "undici";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { createUndiciClient } from "../../src/upstream/client.js";
import { okAnswer, okHead, rawServer } from "./raw-server.js";
import { exchange, post, Recorder, settle, testClient } from "./recorder.js";

describe("an exchange", () => {
  it("calls the handler in order, with the body that came", async () => {
    const server = await rawServer(({ socket }) => socket.write(okAnswer));
    const recorder = await exchange(testClient(), post(server.origin));
    expect(recorder.calls).toEqual(["connected", "head", "data", "end"]);
    expect(recorder).toMatchObject({ status: 200, body: "ok" });
  });

  it("sends method, path, headers, length and body as given", async () => {
    const server = await rawServer(({ socket }) => socket.write(okAnswer));
    await exchange(testClient(), post(server.origin, { path: "/v1/messages?beta=true" }));
    const { received } = await server.connection(0);
    expect(received).toMatch(/^POST \/v1\/messages\?beta=true HTTP\/1\.1\r\nhost: 127\.0\.0\.1:\d+\r\n/);
    expect(received).toContain("\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}");
  });

  it("reuses a connection for the next request", async () => {
    const server = await rawServer(({ socket }) => socket.write(okAnswer));
    const client = testClient();
    await exchange(client, post(server.origin));
    await settle();
    await exchange(client, post(server.origin));
    expect(server.connections).toHaveLength(1);
  });

  it("runs requests at the same time on connections of their own", async () => {
    const server = await rawServer(() => undefined);
    const client = testClient();
    const recorders = [new Recorder(), new Recorder(), new Recorder()];
    for (const recorder of recorders) client.send(post(server.origin), recorder);
    await Promise.all(recorders.map((recorder) => recorder.called("connected")));
    await server.connection(2);
    expect(server.connections).toHaveLength(3);
  });

  it("gives repeated fields as arrays, in lower case, and none that the gateway has no use for", async () => {
    const server = await rawServer(({ socket }) =>
      socket.write(
        `${okHead}X-RateLimit-A: 1\r\nx-ratelimit-a: 2\r\n__proto__: evil\r\nconstructor: c\r\ncontent-length: 0\r\n\r\n`,
      ),
    );
    const { headers } = await exchange(testClient(), post(server.origin));
    expect(headers).toEqual({ "content-type": "text/event-stream", "x-ratelimit-a": ["1", "2"] });
  });

  it("passes a redirect on as a head and follows it nowhere", async () => {
    const sink = await rawServer(() => undefined);
    const server = await rawServer(({ socket }) =>
      socket.write(`HTTP/1.1 307 Moved\r\nlocation: ${sink.origin}/\r\ncontent-length: 0\r\n\r\n`),
    );
    const recorder = await exchange(testClient(), post(server.origin));
    expect(recorder.status).toBe(307);
    expect(sink.connections).toHaveLength(0);
  });

  it("drops 1xx answers", async () => {
    const server = await rawServer(({ socket }) =>
      socket.write(`HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n${okAnswer}`),
    );
    const recorder = await exchange(testClient(), post(server.origin));
    expect(recorder.calls).toEqual(["connected", "head", "data", "end"]);
  });

  it("keeps the caller's AsyncLocalStorage in every handler call, also on a socket that another caller opened", async () => {
    const storage = new AsyncLocalStorage<string>();
    const server = await rawServer(({ socket }) => socket.write(okAnswer));
    const client = testClient();
    const seen = async (caller: string): Promise<unknown[]> => {
      const stores: unknown[] = [];
      const recorder = new Recorder();
      recorder.on = () => stores.push(storage.getStore());
      storage.run(caller, () => client.send(post(server.origin), recorder));
      await recorder.done;
      await settle();
      return stores;
    };
    expect(await seen("a")).toEqual(["a", "a", "a", "a"]);
    expect(await seen("b")).toEqual(["b", "b", "b", "b"]);
    expect(server.connections).toHaveLength(1);
  });
});

describe("pause and resume", () => {
  async function streamingServer(): Promise<{ origin: string; send: (text: string) => void }> {
    const server = createServer((req, res) => {
      req.resume();
      res.writeHead(200).flushHeaders();
      send = (text) => res.write(text);
    });
    let send: (text: string) => void = () => undefined;
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return { origin, send: (text) => send(text) };
  }

  it("delivers nothing while paused, and everything after", async () => {
    const { origin, send } = await streamingServer();
    const recorder = new Recorder();
    const call = testClient().send(post(origin), recorder);
    recorder.on = (name) => {
      if (name === "head") call.pause();
    };
    await recorder.called("head");
    send("one");
    await settle();
    expect(recorder.body).toBe("");
    call.resume();
    call.resume();
    await recorder.called("data");
    expect(recorder.body).toBe("one");
    call.abort();
  });

  it("works before the connection exists", async () => {
    const { origin, send } = await streamingServer();
    const recorder = new Recorder();
    const call = testClient().send(post(origin), recorder);
    call.pause();
    call.pause();
    await recorder.called("head");
    send("one");
    await settle();
    expect(recorder.body).toBe("");
    call.resume();
    await recorder.called("data");
    call.abort();
  });

  it("calls no handler method before resume returns", async () => {
    const { origin, send } = await streamingServer();
    const recorder = new Recorder();
    const call = testClient().send(post(origin), recorder);
    call.pause();
    await recorder.called("head");
    send("one");
    await settle();
    call.resume();
    expect(recorder.body).toBe("");
    await recorder.called("data");
    call.abort();
  });

  it("does nothing to the next request on the connection once the call is over", async () => {
    const server = await rawServer(({ socket }) => socket.write(okAnswer));
    const client = testClient();
    const first = new Recorder();
    const call = client.send(post(server.origin), first);
    await first.done;
    await settle();
    const second = new Recorder();
    client.send(post(server.origin), second);
    call.pause();
    call.resume();
    await second.done;
    expect(second.body).toBe("ok");
  });

  it.each([
    ["resets the connection", (socket: { resetAndDestroy(): void }) => socket.resetAndDestroy()],
    ["ends the connection", (socket: { end(): void }) => socket.end()],
  ])("survives a provider that %s of a response that is not kept alive", async (_, finish) => {
    const uncaught = vi.fn();
    process.on("uncaughtException", uncaught);
    onTestFinished(() => void process.off("uncaughtException", uncaught));
    const server = await rawServer(({ socket }) => socket.write("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n"));
    const recorder = new Recorder();
    const call = testClient().send(post(server.origin), recorder);
    recorder.on = (name) => {
      if (name !== "data") return;
      call.pause();
      finish(socket);
    };
    await recorder.called("head");
    const { socket } = await server.connection(0);
    socket.write("hello");
    await recorder.called("data");
    await settle();
    call.resume();
    await recorder.done;
    expect(recorder.body).toBe("hello");
    expect(uncaught).not.toHaveBeenCalled();
  });

  it("survives data and end that come in one read while the reader pauses", async () => {
    const uncaught = vi.fn();
    process.on("uncaughtException", uncaught);
    onTestFinished(() => void process.off("uncaughtException", uncaught));
    const server = await rawServer(({ socket }) => socket.end("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello"));
    const recorder = new Recorder();
    const call = testClient().send(post(server.origin), recorder);
    recorder.on = (name) => {
      if (name === "data") call.pause();
    };
    await recorder.called("data");
    await settle();
    call.resume();
    await recorder.done;
    expect(recorder.calls).toEqual(["connected", "head", "data", "end"]);
    expect(uncaught).not.toHaveBeenCalled();
  });
});

describe("an injected dispatcher", () => {
  it("is used for everything and left open", async () => {
    const server = await rawServer(({ socket }) => socket.write(okAnswer));
    const dispatcher = new Agent();
    onTestFinished(() => dispatcher.destroy());
    const client = createUndiciClient({ dispatcher });
    const dispatch = vi.spyOn(dispatcher, "dispatch");
    const recorder = await exchange(client, post(server.origin));
    await client.close();
    expect(recorder.body).toBe("ok");
    expect(dispatch).toHaveBeenCalledOnce();
    expect(dispatcher.destroyed).toBe(false);
  });

  it("reports what it throws at onError, later", async () => {
    const dispatcher = new Agent();
    onTestFinished(() => dispatcher.destroy());
    vi.spyOn(dispatcher, "dispatch").mockImplementation(() => {
      throw new Error("no");
    });
    const recorder = new Recorder();
    testClient({ dispatcher }).send(post("http://127.0.0.1:1"), recorder);
    expect(recorder.calls).toEqual([]);
    await recorder.done;
    expect(recorder.error?.message).toBe("no");
  });
});

describe("close", () => {
  it("fails what is under way, once, and leaves no socket", async () => {
    const server = await rawServer(({ socket }) => socket.write(`${okHead}transfer-encoding: chunked\r\n\r\n`));
    const client = createUndiciClient();
    const recorder = new Recorder();
    client.send(post(server.origin), recorder);
    await recorder.called("head");
    await client.close();
    await (
      await server.connection(0)
    ).closed;
    expect(recorder.calls).toEqual(["connected", "head", "error"]);
    expect(process.getActiveResourcesInfo().filter((name) => name === "TCPSocketWrap")).toEqual([]);
  });

  it("ends idle connections and can be repeated", async () => {
    const server = await rawServer(({ socket }) => socket.write(okAnswer));
    const client = createUndiciClient();
    await exchange(client, post(server.origin));
    await client.close();
    await client.close();
    await (
      await server.connection(0)
    ).closed;
  });

  it("fails later requests at onError, later", async () => {
    const client = createUndiciClient();
    await client.close();
    const recorder = new Recorder();
    client.send(post("http://127.0.0.1:1"), recorder);
    expect(recorder.calls).toEqual([]);
    await recorder.done;
    expect(recorder.error?.code).toBe("UND_ERR_CLOSED");
  });
});
