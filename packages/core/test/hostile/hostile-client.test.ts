/** Clients that break every rule: each ends in a clear outcome, no provider is misled, and the next request is served. */

import { once } from "node:events";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { chunked, chunkedHead, done, healthyAnswer, output, pour, tcpProvider } from "./tcp-provider.js";
import type { Play, TcpProvider } from "./tcp-provider.js";
import { chatBody, provider, world } from "./world.js";
import type { World } from "./world.js";

const healthy: Play = (socket) => void socket.write(healthyAnswer);

async function setting(play: Play = healthy, config: object = {}): Promise<World & { readonly upstream: TcpProvider }> {
  const upstream = await tcpProvider(play);
  return { ...(await world({ providers: { p: provider(upstream.origin) }, ...config })), upstream };
}

/** Opens a connection and writes these bytes. */
async function dial(url: string, bytes: string | Uint8Array = ""): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.write(bytes);
  return socket;
}

/** All that the server sends until it closes, or until `enough` is in it. */
async function receive(socket: Socket, enough?: string): Promise<string> {
  let text = "";
  return new Promise((resolve) => {
    socket.on("data", (data: Buffer) => {
      text += data.toString("latin1");
      if (enough !== undefined && text.includes(enough)) resolve(text);
    });
    socket.once("close", () => resolve(text));
  });
}

const type = "content-type: application/json\r\n";
const length = `content-length: ${chatBody.length}\r\n`;

function post(target: string, headers: string, body = chatBody): string {
  return `POST ${target} HTTP/1.1\r\n${headers}\r\n${body}`;
}
const chat = "/v1/chat/completions";
const host = "host: gateway\r\nconnection: close\r\n";

describe("a request line or head", () => {
  it.each([
    ["//host", post(`//evil.example${chat}`, host + type + length), 404],
    ["/\\host", post(`/\\evil.example${chat}`, host + type + length), 404],
    ["an absolute form", post(`http://evil.example${chat}`, host + type + length), 404],
    ["dot segments", post(`/v1/../v1/chat/completions`, host + type + length), 404],
    ["encoded dot segments", post(`/v1/%2e%2e/v1/chat/completions`, host + type + length), 404],
    ["an encoded slash", post(`/v1%2fchat/completions`, host + type + length), 404],
    ["a path of percent signs", post(`/%%%${"%".repeat(4000)}`, host + type + length), 404],
    ["a very long path", post(`/v1/${"a/".repeat(5000)}`, host + type + length), 404],
    ["two Host lines", post(chat, `${host}host: other\r\n${type}${length}`), 400],
    ["no Host", post(chat, `connection: close\r\n${type}${length}`), 400],
    ["a length and chunks", post(chat, `${host}${type}${length}transfer-encoding: chunked\r\n`, "0\r\n\r\n"), 400],
    ["two lengths", post(chat, `${host}${type}${length}content-length: 1\r\n`), 400],
    ["an unknown transfer encoding", post(chat, `${host}${type}transfer-encoding: xchunked\r\n`, "0\r\n\r\n"), 400],
    ["a folded line", post(chat, `${host}x-a: 1\r\n b\r\n${type}${length}`), 400],
    ["a space before the colon", post(chat, `${host}${type}content-length : ${chatBody.length}\r\n`), 400],
    ["a negative length", post(chat, `${host}${type}content-length: -1\r\n`), 400],
    ["headers beyond 16 KiB", post(chat, `${host}x-a: ${"a".repeat(17_000)}\r\n${type}${length}`), 431],
    ["no HTTP version", `POST ${chat}\n\n`, 400],
    ["a broken chunk", post(chat, `${host}${type}transfer-encoding: chunked\r\n`, "zz\r\n"), 400],
    [
      "a TTFT timeout that is repeated",
      post(chat, `${host}${type}${length}x-tfy-ttft-timeout-ms: 5\r\nx-tfy-ttft-timeout-ms: 5\r\n`),
      400,
    ],
    ["a form", post(chat, `${host}content-type: multipart/form-data; boundary=x\r\n${length}`), 415],
  ])("with %s is refused, and no provider is called", async (_name, bytes, status) => {
    const { url, ask, upstream } = await setting();
    const answer = await receive(await dial(url, bytes));
    expect(answer.slice(0, 12)).toBe(answer === "" ? "" : `HTTP/1.1 ${status}`);
    expect(upstream.requests).toHaveLength(0);
    expect((await ask()).status).toBe(200);
  });

  it("with Connection lines that name the gateway's own headers takes none of them away", async () => {
    const { url, upstream } = await setting();
    const abuse = "connection: authorization, x-hop\r\nconnection: close, content-type, content-length\r\nx-hop: 1\r\n";
    await receive(await dial(url, post(chat, `host: g\r\n${abuse}authorization: Bearer client\r\n${type}${length}`)));
    const head = upstream.requests[0]?.head ?? "";
    expect(head).toContain("authorization: Bearer key-of-the-target");
    expect(head).not.toContain("x-hop");
    expect(upstream.requests[0]?.body.toString()).toContain('"model":"x"');
  });

  it("with hop-by-hop and proxy headers sends none of them on", async () => {
    const { url, upstream } = await setting();
    const names = [
      "te",
      "trailer",
      "upgrade",
      "keep-alive",
      "proxy-connection",
      "proxy-authorization",
      "http2-settings",
      "via",
      "forwarded",
    ];
    const more = [
      "x-forwarded-for",
      "x-forwarded-host",
      "x-real-ip",
      "cf-connecting-ip",
      "x_api_key",
      "x-custom-host",
      "__proto__",
      "constructor",
    ];
    const lines = [...names, ...more].map((name) => `${name}: canary\r\n`).join("");
    await receive(await dial(url, post(chat, `${host}${lines}${type}${length}`)));
    expect(upstream.requests).toHaveLength(1);
    expect(upstream.requests[0]?.head).not.toContain("canary");
    expect(upstream.requests[0]?.head).toContain(`host: ${new URL(upstream.origin).host}`);
  });

  it("that waits for 100 Continue gets it, and its answer", async () => {
    const { url, upstream } = await setting();
    const socket = await dial(url, `POST ${chat} HTTP/1.1\r\n${host}${type}${length}expect: 100-continue\r\n\r\n`);
    const answer = receive(socket);
    await once(socket, "data");
    socket.write(chatBody);
    expect(await answer).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK/);
    expect(upstream.requests[0]?.head).not.toContain("expect");
  });
});

describe("a body", () => {
  it("that is chunked reaches the provider once, with a length, and the connection serves the next request", async () => {
    const { url, upstream } = await setting();
    const keep = `host: g\r\n${type}`;
    const socket = await dial(
      url,
      post(chat, `${keep}transfer-encoding: chunked\r\n`, `${chunked(chatBody)}0\r\n\r\n`),
    );
    const both = receive(socket);
    socket.write(post(chat, `${keep}connection: close\r\n${length}`));
    expect((await both).match(/HTTP\/1\.1 200/g)).toHaveLength(2);
    expect(upstream.requests).toHaveLength(2);
    for (const { head, body } of upstream.requests) {
      expect(head).toContain(`content-length: ${body.length}`);
      expect(head).not.toContain("transfer-encoding");
    }
  });

  it.each([
    ["without end", post(chat, `${host}${type}transfer-encoding: chunked\r\n`, "")],
    ["announced as huge", post(chat, `${host}${type}content-length: 99999999999\r\n`, "{")],
  ])("%s is refused at the limit, without being kept", async (_name, head) => {
    const { url, upstream } = await setting(healthy, { limits: { maxRequestBytes: 100_000 } });
    const socket = await dial(url, head);
    const answer = receive(socket, "request_too_large");
    pour(socket, chunked("x".repeat(16_384)));
    expect(await answer).toMatch(/^HTTP\/1\.1 413/);
    socket.destroy();
    expect(upstream.requests).toHaveLength(0);
  });

  it.each([
    ["deep arrays", `{"model":"m","stream":true,"messages":${"[".repeat(2_000_000)}${"]".repeat(2_000_000)}}`],
    ["deep objects", `{"model":"m","stream":true,"x":${'{"a":'.repeat(1_000_000)}1${"}".repeat(1_000_000)}}`],
  ])("of %s blocks nobody for long and ends in an answer", async (_name, body) => {
    const { ask } = await setting();
    const delay = monitorEventLoopDelay({ resolution: 10 });
    delay.enable();
    const answer = await ask({ body });
    delay.disable();
    expect([200, 400]).toContain(answer.status);
    expect(delay.max / 1e6).toBeLessThan(2000);
    expect((await ask()).status).toBe(200);
  });

  it.each([
    ["__proto__", '{"__proto__":{"stream":true,"model":"m"},"messages":[]}'],
    ["constructor", '{"constructor":{"prototype":{"stream":true,"model":"m"}},"messages":[]}'],
    ["hasOwnProperty", '{"hasOwnProperty":1,"toString":2,"model":"nope"}'],
  ])("with the key %s changes nothing for anybody", async (key, body) => {
    const { ask, upstream } = await setting();
    expect([400, 404]).toContain((await ask({ body })).status);
    expect((await ask({ body: "{}" })).status).toBe(400);
    expect(Object.prototype).not.toHaveProperty("stream");
    expect(Object.prototype).not.toHaveProperty("model");
    const full = `{"model":"m","stream":true,"messages":[],"${key}":{"x":1}}`;
    expect((await ask({ body: full })).status).toBe(200);
    expect(upstream.requests[0]?.body.toString()).toBe(full.replace('"m"', '"x"'));
  });

  it.each([
    ["__proto__", "__proto__"],
    ["constructor", "constructor"],
    ["toString", "toString"],
    ["a pattern", "*"],
    ["nothing", ""],
    ["a path", "../../x"],
    ["a NUL", "m\u0000"],
  ])("whose model is %s is refused", async (_name, model) => {
    const { ask, upstream } = await setting();
    expect([400, 404]).toContain((await ask({ body: JSON.stringify({ model, stream: true }) })).status);
    expect(upstream.requests).toHaveLength(0);
  });

  it.each([
    ["a gzip bomb", gzipSync(Buffer.alloc(64 * 1_048_576)), "gzip", 413],
    ["two layers of gzip", gzipSync(gzipSync(chatBody)), "gzip, gzip", 415],
    ["gzip that is none", Buffer.from(chatBody), "gzip", 400],
    [
      "invalid UTF-8",
      Buffer.concat([Buffer.from('{"model":"m","a":"'), Buffer.of(0xff, 0xfe), Buffer.from('"}')]),
      "identity",
      undefined,
    ],
  ])("that is %s ends in an answer", async (_name, body, encoding, status) => {
    const { ask } = await setting(healthy, { limits: { maxRequestBytes: 1_048_576 } });
    const answer = await ask({ body, headers: { "content-encoding": encoding } });
    expect(answer.complete).toBe(true);
    if (status !== undefined) expect(answer.status).toBe(status);
    expect((await ask()).status).toBe(200);
  });

  it("that a provider refuses before it has it whole is answered with the provider's refusal", async () => {
    const refusal =
      "HTTP/1.1 413 Too Large\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}";
    const { createServer } = await import("node:net");
    const server = createServer((socket) =>
      socket.on("error", () => undefined).once("data", () => socket.end(refusal)),
    );
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    const { ask } = await world({ providers: { p: provider(`http://127.0.0.1:${port}`) } });
    const answer = await ask({ body: JSON.stringify({ model: "m", stream: true, user: "x".repeat(8_000_000) }) });
    server.close();
    // The rest of the body may meet a closed connection first: then it is a network error.
    expect([413, 502]).toContain(answer.status);
    expect(answer.complete).toBe(true);
  });
});

describe("a connection", () => {
  it("that is half closed after the request counts as one that the client has left, as Node sees it", async () => {
    const { url, ended, observed, upstream } = await setting((socket) => void socket.write(chunkedHead));
    const socket = await dial(url);
    socket.end(post(chat, host + type + length));
    expect(await receive(socket)).toBe("");
    if (upstream.requests.length > 0) {
      await ended(1);
      expect(observed.at(-1)).toMatchObject({ outcome: "client-abort", status: 499 });
    }
    await upstream.closed();
  });

  it("that is half closed within the body calls no provider", async () => {
    const { url, ask, upstream } = await setting();
    const socket = await dial(url);
    socket.end(post(chat, host + type + length, chatBody.slice(0, 10)));
    expect(await receive(socket)).toMatch(/^(HTTP\/1\.1 400|$)/);
    expect((await ask()).status).toBe(200);
    expect(upstream.requests).toHaveLength(1);
  });

  it("that is reset while it reads nothing closes the provider's", async () => {
    const { open, ended, observed, upstream } = await setting((socket) => {
      socket.write(chunkedHead + chunked(output));
      pour(socket, chunked(`: ${"x".repeat(16_384)}\n\n`));
    });
    const client = await open();
    await client.waitFor("hi");
    client.socket.pause();
    while (upstream.written < 1_000_000) await new Promise((resolve) => setTimeout(resolve, 5));
    client.socket.resetAndDestroy();
    await ended(1);
    await upstream.closed();
    expect(observed.at(-1)).toMatchObject({ outcome: "client-abort" });
  });

  it("that reads little by little gets everything", async () => {
    const big = `: ${"x".repeat(200_000)}\n\n`;
    const { open } = await setting(
      (socket) => void socket.write(`${chunkedHead}${chunked(output)}${chunked(big)}${chunked(done)}0\r\n\r\n`),
    );
    const client = await open();
    client.socket.pause();
    const drip = setInterval(() => {
      client.socket.resume();
      setImmediate(() => client.socket.pause());
    }, 1);
    const answer = await client.answer().finally(() => clearInterval(drip));
    expect(answer).toMatchObject({ complete: true, body: Buffer.from(output + big + done) });
  });

  it("with requests in a row before the first answer gets the answers in order", async () => {
    const { url } = await setting();
    const keep = post(chat, `host: g\r\n${type}${length}`);
    const socket = await dial(url, keep + keep + post("/nothing", host, ""));
    expect((await receive(socket)).match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 404"]);
  });

  it("of HTTP/1.0 is reset where the stream broke, since its end would say that it is whole", async () => {
    const play: Play = (socket) =>
      void socket.write(chunkedHead + chunked(output), () => setTimeout(() => socket.resetAndDestroy(), 20));
    const { url } = await setting(play, { onMidStreamFailure: "abort" });
    const socket = await dial(url, `POST ${chat} HTTP/1.0\r\nhost: g\r\n${type}${length}\r\n${chatBody}`);
    const error = once(socket, "error");
    await receive(socket);
    expect(await error).toMatchObject([{ code: "ECONNRESET" }]);
  });
});

it("a gateway that is its own provider answers 508, once", async () => {
  const own = { url: "" };
  const first = await setting();
  const { createServer } = await import("node:http");
  const { createGateway } = await import("../../src/gateway.js");
  const { createNodeHandler } = await import("../../src/http/node-handler.js");
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  own.url = `http://127.0.0.1:${(server.address() as { port: number }).port}`;
  const started: unknown[] = [];
  const gateway = createGateway({
    providers: { p: provider(own.url) },
    models: { m: { targets: [{ target: "p/m" }] } },
    observers: [{ onEvent: (event) => void (event.type === "attempt-start" && started.push(event)) }],
  });
  server.on("request", createNodeHandler(gateway));
  const response = await fetch(`${own.url}${chat}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: chatBody,
  });
  expect(response.status).toBe(508);
  expect(await response.text()).toContain("loop_detected");
  expect(started).toHaveLength(1);
  await gateway.close({ graceMs: 0 });
  server.closeAllConnections();
  server.close();
  expect((await first.ask()).status).toBe(200);
});
