/** Providers that break every rule: each ends in a clear outcome, in bounded memory, and the next request is served. */

import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import {
  chunked,
  chunkedHead,
  done,
  healthyAnswer,
  openHead,
  output,
  pour,
  preamble,
  streamHead,
  tcpProvider,
} from "./tcp-provider.js";
import type { Play } from "./tcp-provider.js";
import { provider, world } from "./world.js";

const heldBytes = 65_536;
/** What the kernel takes on both ends of a loopback connection, and undici reads at once, beyond what is held. */
const inFlight = 8 * 1_048_576;

const config = {
  gate: { maxHeldBytes: heldBytes, onOverflow: "fail" },
  timeouts: { idleTimeoutMs: 250 },
} as const;

interface Case {
  readonly name: string;
  readonly play: Play;
  readonly status: number;
  readonly code?: string | RegExp;
}

const write =
  (bytes: string | Uint8Array): Play =>
  (socket) =>
    void socket.write(bytes);
const endWith =
  (bytes: string | Uint8Array): Play =>
  (socket) =>
    void socket.end(bytes);
const thenReset =
  (bytes: string): Play =>
  (socket) =>
    void socket.write(bytes, () => setTimeout(() => socket.resetAndDestroy(), 20));
const pouring =
  (head: string, bytes: string | Uint8Array): Play =>
  (socket) => {
    socket.write(head);
    pour(socket, bytes);
  };
const event = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`;
const asChunk = (text: string): string => chunked(text);
const zeros = Buffer.alloc(64 * 1_048_576);

const beforeOutput: readonly Case[] = [
  { name: "a reset at once", play: (socket) => void socket.resetAndDestroy(), status: 502, code: "upstream_error" },
  { name: "a FIN at once", play: endWith(""), status: 502, code: "upstream_error" },
  { name: "no HTTP", play: endWith("SSH-2.0-OpenSSH_9.9\r\n"), status: 502 },
  { name: "half a head, then a FIN", play: endWith("HTTP/1.1 200 O"), status: 502 },
  { name: "silence", play: () => undefined, status: 504, code: "upstream_idle_timeout" },
  { name: "a head and silence", play: write(chunkedHead), status: 504, code: "upstream_idle_timeout" },
  {
    name: "a flood of 103 Early Hints",
    play: pouring("", "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".repeat(100)),
    status: 502,
  },
  { name: "a flood of 100 Continue", play: pouring("", "HTTP/1.1 100 Continue\r\n\r\n".repeat(100)), status: 502 },
  {
    name: "a switch of protocols",
    play: write("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"),
    status: 502,
  },
  { name: "304 with a length", play: write("HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n"), status: 502 },
  { name: "204", play: write("HTTP/1.1 204 No Content\r\n\r\n"), status: 502, code: "upstream_empty_stream" },
  {
    name: "205 with chunks",
    play: write(`HTTP/1.1 205 Reset Content\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`),
    status: 502,
  },
  { name: "a large header", play: write(`${streamHead}x: ${"a".repeat(40_000)}\r\n\r\n`), status: 502 },
  { name: "a header without end", play: pouring(`${streamHead}x: `, "a".repeat(16_384)), status: 502 },
  { name: "headers without end", play: pouring(streamHead, "x-y: z\r\n".repeat(1000)), status: 502 },
  { name: "two lengths", play: write(`${streamHead}content-length: 2\r\ncontent-length: 3\r\n\r\nab`), status: 502 },
  {
    name: "a length and chunks",
    play: write(`${streamHead}content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`),
    status: 502,
  },
  {
    name: "a short length",
    play: endWith(`${streamHead}content-length: 500\r\n\r\n${preamble}`),
    status: 502,
    code: "upstream_truncated_stream",
  },
  { name: "a broken chunk", play: write(`${chunkedHead}zz\r\n`), status: 502 },
  {
    name: "a reset after the role",
    play: thenReset(chunkedHead + asChunk(preamble)),
    status: 502,
    code: "upstream_truncated_stream",
  },
  {
    name: "a FIN after the role",
    play: endWith(chunkedHead + asChunk(preamble)),
    status: 502,
    code: "upstream_truncated_stream",
  },
  {
    name: "an end after the role",
    play: write(`${chunkedHead}${asChunk(preamble)}0\r\n\r\n`),
    status: 502,
    code: "upstream_truncated_stream",
  },
  {
    name: "HTML",
    play: endWith(`${openHead}<!doctype html><title>502</title>`),
    status: 502,
    code: "upstream_invalid_body",
  },
  {
    name: "HTML without end",
    play: pouring(openHead, `<p>${"x".repeat(9000)}`),
    status: 502,
    code: "upstream_invalid_body",
  },
  {
    name: "a redirect",
    play: endWith("HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"),
    status: 502,
  },
  {
    name: "an error body without end",
    play: pouring("HTTP/1.1 500 Oops\r\nconnection: close\r\n\r\n", "x".repeat(9000)),
    status: 500,
  },
  {
    name: "an error body that never comes",
    play: write("HTTP/1.1 429 Slow down\r\ncontent-length: 99\r\n\r\n"),
    status: 429,
  },
  { name: "a status beyond all", play: endWith("HTTP/1.1 999 Denied\r\ncontent-length: 0\r\n\r\n"), status: 502 },
  {
    name: "an error event, then bytes without end",
    play: pouring(openHead + event({ error: { message: "Broke.", type: "server_error" } }), output),
    status: 500,
    code: "server_error",
  },
  { name: "a line without end", play: pouring(openHead, "x".repeat(9000)), status: 502, code: "upstream_error" },
  {
    name: "a data line without end",
    play: pouring(`${openHead}data: {"choices":"`, "x".repeat(9000)),
    status: 502,
    code: "upstream_error",
  },
  {
    name: "comments without end",
    play: pouring(openHead, ": keepalive\n\n".repeat(100)),
    status: 502,
    code: "upstream_error",
  },
  {
    name: "empty data lines without end",
    play: pouring(openHead, "data:\n".repeat(100)),
    status: 502,
    code: "upstream_error",
  },
  { name: "line ends without end", play: pouring(openHead, "\n".repeat(1000)), status: 502, code: "upstream_error" },
  {
    name: "field names without end",
    play: pouring(openHead, "id: 1\nretry: 1\nevent: ping\n".repeat(100)),
    status: 502,
    code: "upstream_error",
  },
  {
    name: "neutral events without end",
    play: pouring(openHead, preamble.repeat(50)),
    status: 502,
    code: "upstream_error",
  },
  { name: "nested JSON without end", play: pouring(openHead, "[".repeat(9000)), status: 502, code: "upstream_error" },
  {
    name: "a gzip bomb",
    play: endWith(
      Buffer.concat([Buffer.from(`${streamHead}content-encoding: gzip\r\nconnection: close\r\n\r\n`), gzipSync(zeros)]),
    ),
    status: 502,
  },
  {
    name: "a gzip bomb in a gzip bomb",
    play: endWith(
      Buffer.concat([
        Buffer.from(`${streamHead}content-encoding: gzip, gzip\r\nconnection: close\r\n\r\n`),
        gzipSync(gzipSync(zeros)),
      ]),
    ),
    status: 502,
  },
  {
    name: "gzip that is none",
    play: endWith(`${streamHead}content-encoding: gzip\r\nconnection: close\r\n\r\n${output}`),
    status: 502,
  },
  {
    name: "an encoding that nobody knows",
    play: endWith(`${streamHead}content-encoding: x-secret\r\nconnection: close\r\n\r\n${output}`),
    status: 502,
  },
];

describe("a provider that answers, before output, with", () => {
  it.each(beforeOutput)("$name: $status", async ({ play, status, code }) => {
    const hostile = await tcpProvider((socket, request, index) =>
      index === 0 ? play(socket, request, 0) : void socket.write(healthyAnswer),
    );
    const { ask, observed, gateway } = await world({ ...config, providers: { p: provider(hostile.origin) } });
    const answer = await ask();
    expect(answer.status).toBe(status);
    expect(answer.complete).toBe(true);
    const body = JSON.parse(answer.body.toString()) as { error: { code: string; message: string } };
    expect(body.error.message).not.toBe("");
    if (code !== undefined) expect(body.error.code).toMatch(code);
    expect(observed.filter((one) => one.type === "request-end")).toMatchObject([
      { outcome: "failure", status, attempts: 1 },
    ]);
    expect(hostile.written).toBeLessThan(heldBytes + inFlight);
    const next = await ask();
    expect(next.status).toBe(200);
    expect(next.complete).toBe(true);
    await gateway.close({ graceMs: 0 });
    await hostile.closed();
  });
});

const afterOutput: readonly { readonly name: string; readonly play: Play; readonly kind: string }[] = [
  { name: "a reset", play: thenReset(chunkedHead + asChunk(output)), kind: "network" },
  { name: "a FIN within the chunks", play: endWith(chunkedHead + asChunk(output)), kind: "network" },
  { name: "a FIN within an event", play: endWith(chunkedHead + asChunk(`${output}data: {"cho`)), kind: "network" },
  { name: "a short length", play: endWith(`${streamHead}content-length: 500\r\n\r\n${output}`), kind: "network" },
  {
    name: "an end without the last event",
    play: endWith(`${chunkedHead}${asChunk(output)}0\r\n\r\n`),
    kind: "truncated-stream",
  },
  {
    name: "the end of the connection without the last event",
    play: endWith(openHead + output),
    kind: "truncated-stream",
  },
  { name: "a broken chunk", play: write(`${chunkedHead}${asChunk(output)}zz\r\n`), kind: "network" },
  { name: "silence", play: write(chunkedHead + asChunk(output)), kind: "idle-timeout" },
];

describe("a provider that answers, after output, with", () => {
  it.each(afterOutput)("$name: a stream that does not look complete", async ({ play, kind }) => {
    const hostile = await tcpProvider(play);
    const { ask, ended, observed } = await world({ ...config, providers: { p: provider(hostile.origin) } });
    const answer = await ask();
    await ended(1);
    expect(answer.status).toBe(200);
    expect(answer.complete).toBe(false);
    expect(answer.body.toString().startsWith(output)).toBe(true);
    expect(answer.body.toString()).toMatch(/\n\ndata: \{"error":\{[^\n]*\}\n\n$/);
    expect(observed.find((one) => one.type === "stream-fail")).toMatchObject({ failure: { kind } });
    await hostile.closed();
  });

  it("trailers after the last event: a complete stream", async () => {
    const hostile = await tcpProvider(write(`${chunkedHead}${asChunk(output + done)}0\r\nx-trailer: 1\r\n\r\n`));
    const { ask } = await world({ ...config, providers: { p: provider(hostile.origin) } });
    expect(await ask()).toMatchObject({ status: 200, complete: true });
  });

  it("a line without end: it passes through, unread, to a client that takes it", async () => {
    const hostile = await tcpProvider(pouring(openHead + output, "x".repeat(65_536)));
    const { open, ended } = await world({ ...config, providers: { p: provider(hostile.origin) } });
    const client = await open();
    while (client.byteLength < 20 * 1_048_576) await new Promise((resolve) => client.socket.once("data", resolve));
    client.leave();
    await ended(1);
    await hostile.closed();
  });
});

describe("a provider that never ends its opening, with the default onOverflow", () => {
  it.each([
    ["a line", "x".repeat(9000)],
    ["comments", ": keepalive\n\n".repeat(100)],
    ["empty data lines", "data:\n".repeat(100)],
    ["neutral events", preamble.repeat(50)],
  ])("%s: it is released at the limit, and the record says so", async (_name, bytes) => {
    const hostile = await tcpProvider(pouring(openHead, bytes));
    const { open, observed, ended } = await world({
      gate: { maxHeldBytes: heldBytes },
      providers: { p: provider(hostile.origin) },
    });
    const client = await open();
    await client.waitFor("HTTP/1.1 200");
    client.leave();
    await ended(1);
    const overflow = observed.find((one) => one.type === "gate-overflow");
    expect(overflow?.heldBytes).toBeLessThan(heldBytes + 2 * 65_536);
    await hostile.closed();
  });
});

it("a thousand answers that are turned down leave no connection behind", async () => {
  const hostile = await tcpProvider(
    write(`${chunkedHead}${asChunk(event({ error: { message: "Broke.", type: "server_error" } }))}`),
  );
  const { gateway } = await world({ providers: { p: provider(hostile.origin) } });
  for (let round = 0; round < 20; round += 1) {
    const results = Array.from({ length: 50 }, async () => {
      const request = {
        method: "POST",
        url: "/v1/chat/completions",
        headers: {},
        body: Buffer.from('{"model":"m","stream":true}'),
        signal: new AbortController().signal,
      };
      for await (const one of gateway.handle(request)) if (one.type === "failed") return one.status;
      return 0;
    });
    expect(new Set(await Promise.all(results))).toEqual(new Set([500]));
  }
  await hostile.closed();
  expect(hostile.requests).toHaveLength(1000);
});
