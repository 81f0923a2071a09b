/** Newline-delimited JSON, as Ollama streams it: one `event` frame for each line that is not blank. */

import { ByteBuffer, decodeText } from "./byte-buffer.js";
import type { Frame } from "./frame.js";

const tab = 0x09;
const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const space = 0x20;

export class NdjsonFrames {
  /** The part of the line under way that came in earlier chunks. */
  readonly #partial: ByteBuffer = new ByteBuffer();
  #lineStart: number = 0;

  get pendingBytes(): number {
    return this.#partial.length;
  }

  /** @param base offset of `chunk[0]` in the stream */
  push(chunk: Uint8Array, from: number, base: number, frames: Frame[]): void {
    let position = from;
    if (this.#partial.length === 0) this.#lineStart = base + position;
    for (;;) {
      const lineEnd = chunk.indexOf(lineFeed, position);
      if (lineEnd < 0) break;
      if (this.#partial.length === 0) {
        this.#line(chunk, position, lineEnd, base + lineEnd + 1, frames);
      } else {
        this.#partial.append(chunk, position, lineEnd);
        this.#line(this.#partial.bytes, 0, this.#partial.length, base + lineEnd + 1, frames);
        this.#partial.clear();
      }
      position = lineEnd + 1;
      this.#lineStart = base + position;
    }
    if (position < chunk.length) this.#partial.append(chunk, position, chunk.length);
  }

  end(total: number, frames: Frame[]): void {
    this.#line(this.#partial.bytes, 0, this.#partial.length, total, frames);
    this.#partial.clear();
  }

  #line(bytes: Uint8Array, start: number, end: number, lineEnd: number, frames: Frame[]): void {
    let from = start;
    let to = end;
    while (from < to && isBlank(bytes[from])) from += 1;
    if (from === to) return;
    while (isBlank(bytes[to - 1])) to -= 1;
    const data = decodeText(bytes, from, to);
    frames.push({ kind: "event", event: "", data, start: this.#lineStart, end: lineEnd });
  }
}

function isBlank(byte: number | undefined): boolean {
  return byte === space || byte === tab || byte === carriageReturn;
}
