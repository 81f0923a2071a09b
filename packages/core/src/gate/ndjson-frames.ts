/**
 * Newline-delimited JSON, as Ollama streams it: one `event` frame for each line that is not blank. A first value that goes
 * on over several lines is one frame as well: the JSON that some proxies answer is printed like that.
 */

import { ByteBuffer, decodeText } from "./byte-buffer.js";
import type { Frame } from "./frame.js";
import { isWholeJson, JsonScanner, opensJson } from "./json-frames.js";

const tab = 0x09;
const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const space = 0x20;
const openBrace = 0x7b;

export class NdjsonFrames {
  /** The part of the line under way that came in earlier chunks. */
  readonly #partial: ByteBuffer = new ByteBuffer();
  #lineStart: number = 0;
  /** The lines of a first value that is not closed yet; undefined once there is no such value. */
  #opening: Opening | undefined = { scanner: new JsonScanner(), text: new ByteBuffer(), start: 0 };

  get pendingBytes(): number {
    return this.#partial.length + (this.#opening?.text.length ?? 0);
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
    // No value has ended with its line so far: what is left may be the whole body, an answer that is not streamed.
    const whole = this.#opening !== undefined;
    this.#line(this.#partial.bytes, 0, this.#partial.length, total, frames);
    this.#partial.clear();
    if (this.#opening !== undefined) this.#close(this.#opening, total, frames);
    const frame = frames[0];
    if (whole && frame?.kind === "event" && isWholeJson(frame.data)) {
      frames[0] = { kind: "json", data: frame.data, start: frame.start, end: frame.end };
    }
  }

  #line(bytes: Uint8Array, start: number, end: number, lineEnd: number, frames: Frame[]): void {
    let from = start;
    let to = end;
    while (from < to && isBlank(bytes[from])) from += 1;
    if (from === to) return;
    while (isBlank(bytes[to - 1])) to -= 1;
    if (this.#opening !== undefined && this.#goesOn(this.#opening, bytes, from, to, from === start, lineEnd, frames))
      return;
    const data = decodeText(bytes, from, to);
    frames.push({ kind: "event", event: "", data, start: this.#lineStart, end: lineEnd });
  }

  /** @returns whether the line was part of the first value, which may be more than the line */
  #goesOn(
    opening: Opening,
    bytes: Uint8Array,
    from: number,
    to: number,
    flush: boolean,
    lineEnd: number,
    frames: Frame[],
  ): boolean {
    const { scanner, text } = opening;
    const begins = text.length === 0;
    // A line that opens an object of its own shows that the one before was cut short. Printed values are indented.
    if (begins ? !opensJson(bytes[from]) : flush && bytes[from] === openBrace) {
      this.#close(opening, this.#lineStart, frames);
      return false;
    }
    const closed = scanner.scan(bytes, from, to) >= 0;
    if (begins && closed) {
      this.#opening = undefined;
      return false;
    }
    if (begins) opening.start = this.#lineStart;
    text.append(bytes, from, to);
    if (closed) this.#close(opening, lineEnd, frames);
    else text.appendByte(lineFeed);
    return true;
  }

  #close({ text, start }: Opening, end: number, frames: Frame[]): void {
    this.#opening = undefined;
    if (text.length > 0) frames.push({ kind: "event", event: "", data: text.text(), start, end });
  }
}

interface Opening {
  readonly scanner: JsonScanner;
  readonly text: ByteBuffer;
  start: number;
}

function isBlank(byte: number | undefined): boolean {
  return byte === space || byte === tab || byte === carriageReturn;
}
