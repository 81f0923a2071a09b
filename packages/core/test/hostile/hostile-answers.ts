/** Answers of providers that break every rule. */

import { gzipSync } from "node:zlib";
import { chunked, chunkedHead, openHead, output, pour, preamble, streamHead } from "./tcp-provider.js";
import type { Play } from "./tcp-provider.js";

export interface HostileAnswer {
  readonly name: string;
  readonly play: Play;
  /** What the client gets. */
  readonly status: number;
  readonly code?: string | RegExp;
}

export const write =
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
export const pouring =
  (head: string, bytes: string | Uint8Array): Play =>
  (socket) => {
    socket.write(head);
    pour(socket, bytes);
  };
export const event = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`;
export const asChunk = (text: string): string => chunked(text);
const zeros = Buffer.alloc(64 * 1_048_576);

export const beforeOutput: readonly HostileAnswer[] = [
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

export const afterOutput: readonly { readonly name: string; readonly play: Play; readonly kind: string }[] = [
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
