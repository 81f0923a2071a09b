/** Runs a decoder over chunks, and writes frames so that a test can be read. */

import type { Frame, FrameDecoder } from "../../src/gate/frame.js";
import { createStreamDecoder } from "../../src/gate/frames.js";

const encoder = new TextEncoder();

export function bytes(text: string): Uint8Array {
  return encoder.encode(text);
}

/** All frames of a stream that ends. */
export function decode(chunks: readonly Uint8Array[], decoder: FrameDecoder = createStreamDecoder()): Frame[] {
  const frames = chunks.flatMap((chunk) => decoder.push(chunk));
  return [...frames, ...decoder.end()];
}

/** The frames of a text, the stream still open. */
export function decodeOpen(text: string, decoder: FrameDecoder = createStreamDecoder()): Frame[] {
  return decoder.push(bytes(text));
}

/** One chunk, a chunk a byte, and chunks of the sizes given, over and over. */
export function splittings(stream: Uint8Array, sizes: readonly number[]): Uint8Array[][] {
  const random: Uint8Array[] = [];
  let at = 0;
  for (let turn = 0; at < stream.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1;
    random.push(stream.subarray(at, at + size));
    at += size;
  }
  const single = Array.from(stream, (_byte, index) => stream.subarray(index, index + 1));
  return [[stream], single, random];
}

/** `event:<name>:<data>`, `line:<name>:<data>`, `stray:<data>`, `json:<data>`, `comment` or `foreign`. */
export function brief(frames: readonly Frame[]): string[] {
  return frames.map((frame) => {
    switch (frame.kind) {
      case "event":
        return `${frame.line ? "line" : "event"}:${frame.event}:${frame.data}`;
      case "stray":
      case "json":
        return `${frame.kind}:${frame.data}`;
      default:
        return frame.kind;
    }
  });
}

/** Of a decoder that gets the stream in pieces of 100 bytes: CPU time in ms, the best of three. */
export function decodingCost(stream: Uint8Array): number {
  let best = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 3; run++) {
    const decoder = createStreamDecoder();
    const before = process.cpuUsage();
    for (let at = 0; at < stream.length; at += 100) decoder.push(stream.subarray(at, at + 100));
    const { user, system } = process.cpuUsage(before);
    best = Math.min(best, (user + system) / 1000);
  }
  return best;
}

/** Sixteen times the bytes cost a quadratic decoder 256 times as much. The floor keeps a noisy small figure out. */
export function isLinear(text: (size: number) => string): boolean {
  return decodingCost(bytes(text(1_048_576))) / Math.max(decodingCost(bytes(text(65_536))), 2) < 64;
}
