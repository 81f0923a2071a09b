/** JSON that is not inside a framing: whole bodies, and values between the lines of a stream. */

import { ByteBuffer, decodeText } from "./byte-buffer.js";
import type { Frame } from "./frame.js";

const tab = 0x09;
const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const space = 0x20;
const quote = 0x22;
const comma = 0x2c;
const openBracket = 0x5b;
const backslash = 0x5c;
const closeBracket = 0x5d;
const openBrace = 0x7b;
const closeBrace = 0x7d;

export function opensJson(byte: number | undefined): boolean {
  return byte === openBrace || byte === openBracket;
}

/** Whether the text is one object or array. */
export function isWholeJson(text: string): boolean {
  // Most lines that are only part of a value end otherwise, and a failed parse is costly.
  const last = text.trimEnd().at(-1);
  if (last !== "}" && last !== "]") return false;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null;
  } catch {
    return false;
  }
}

/** Finds where an object or array ends. Braces in strings do not count; whether the text is valid JSON is not asked. */
export class JsonScanner {
  #depth: number = 0;
  #inString: boolean = false;
  #escaped: boolean = false;

  /**
   * Goes on with the value whose first byte was the first one ever given.
   * @returns the index after the value, or -1 if it goes on after `end`
   */
  scan(bytes: Uint8Array, start: number, end: number): number {
    for (let index = start; index < end; index++) {
      const byte = bytes[index];
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false;
        else if (byte === backslash) this.#escaped = true;
        else if (byte === quote) this.#inString = false;
      } else if (byte === quote) {
        this.#inString = true;
      } else if (byte === openBrace || byte === openBracket) {
        this.#depth += 1;
      } else if (byte === closeBrace || byte === closeBracket) {
        this.#depth -= 1;
        if (this.#depth === 0) return index + 1;
      }
    }
    return -1;
  }

  reset(): void {
    this.#depth = 0;
    this.#inString = false;
    this.#escaped = false;
  }
}

/**
 * A body that is JSON: one value, several in a row, or a top-level array whose elements are framed one by one (Gemini
 * without `alt=sse` streams such an array). Numbers, strings and text between the values are skipped.
 */
export class JsonFrames {
  readonly #scanner: JsonScanner = new JsonScanner();
  /** The part of the value under way that came in earlier chunks. */
  readonly #value: ByteBuffer = new ByteBuffer();
  readonly #bodyStart: number;
  #valueStart: number = -1;
  #inArray: boolean = false;
  #inString: boolean = false;
  #escaped: boolean = false;
  #found: boolean = false;

  /** @param bodyStart offset of the first byte that is not white space */
  constructor(bodyStart: number) {
    this.#bodyStart = bodyStart;
  }

  get pendingBytes(): number {
    return this.#value.length;
  }

  push(chunk: Uint8Array, from: number, base: number, frames: Frame[]): void {
    let index = from;
    while (index < chunk.length) {
      if (this.#valueStart < 0) {
        index = this.#skipToValue(chunk, index);
        if (index === chunk.length) return;
        this.#valueStart = base + index;
      }
      const end = this.#scanner.scan(chunk, index, chunk.length);
      if (end < 0) {
        this.#value.append(chunk, index, chunk.length);
        return;
      }
      const data = this.#take(chunk, index, end);
      frames.push({ kind: "json", data, start: this.#valueStart, end: base + end });
      this.#found = true;
      this.#valueStart = -1;
      index = end;
    }
  }

  /** A body without one whole value is no JSON. A cut value after others is nothing that could be judged. */
  end(total: number, frames: Frame[]): void {
    if (!this.#found) frames.push({ kind: "foreign", start: this.#bodyStart, end: total });
    this.#value.clear();
  }

  #take(chunk: Uint8Array, start: number, end: number): string {
    if (this.#value.length === 0) return decodeText(chunk, start, end);
    this.#value.append(chunk, start, end);
    const text = this.#value.text();
    this.#value.clear();
    return text;
  }

  /** @returns the index of the byte that opens a value, or the length of the chunk */
  #skipToValue(chunk: Uint8Array, from: number): number {
    for (let index = from; index < chunk.length; index++) {
      const byte = chunk[index];
      if (this.#inString) this.#skipInString(byte);
      else if (byte === quote) this.#inString = true;
      else if (byte === openBrace) return index;
      else if (byte === closeBracket) this.#inArray = false;
      else if (byte === openBracket) {
        if (this.#inArray) return index;
        this.#inArray = true;
      }
    }
    return chunk.length;
  }

  #skipInString(byte: number | undefined): void {
    // No JSON string goes over a line end. Plain text with a lone quotation mark must not hide what follows.
    if (byte === lineFeed || byte === carriageReturn) this.#inString = this.#escaped = false;
    else if (this.#escaped) this.#escaped = false;
    else if (byte === backslash) this.#escaped = true;
    else if (byte === quote) this.#inString = false;
  }
}

/** Values on lines of their own inside an event stream, which an SSE parser ignores: `stray` frames. */
export class BareJson {
  readonly #scanner: JsonScanner = new JsonScanner();
  readonly #text: ByteBuffer = new ByteBuffer();
  #start: number = -1;

  /** A value is under way: the next line goes on with it. */
  get collecting(): boolean {
    return this.#start >= 0;
  }

  get pendingBytes(): number {
    return this.#text.length;
  }

  /** @param offset of the line in the stream */
  line(bytes: Uint8Array, start: number, end: number, offset: number, frames: Frame[]): void {
    let index = start;
    for (;;) {
      if (this.#start < 0) {
        index = skipBetweenValues(bytes, index, end);
        if (index === end || !opensJson(bytes[index])) return;
        this.#start = offset + index - start;
      }
      const close = this.#scanner.scan(bytes, index, end);
      if (close < 0) {
        this.#text.append(bytes, index, end);
        this.#text.appendByte(lineFeed);
        return;
      }
      frames.push(this.#frame(bytes, index, close, offset + close - start));
      index = close;
    }
  }

  /** The stream ended inside a value. */
  end(total: number, frames: Frame[]): void {
    if (this.#start >= 0) {
      frames.push({ kind: "stray", data: this.#text.text(), start: this.#start, end: total });
    }
    this.drop();
  }

  /** The stream goes on in its framing: what was collected was no JSON. */
  drop(): void {
    this.#start = -1;
    this.#text.clear();
    this.#scanner.reset();
  }

  #frame(bytes: Uint8Array, start: number, close: number, end: number): Frame {
    let data: string;
    if (this.#text.length === 0) {
      data = decodeText(bytes, start, close);
    } else {
      this.#text.append(bytes, start, close);
      data = this.#text.text();
      this.#text.clear();
    }
    const frame: Frame = { kind: "stray", data, start: this.#start, end };
    this.#start = -1;
    return frame;
  }
}

function skipBetweenValues(bytes: Uint8Array, start: number, end: number): number {
  let index = start;
  while (index < end) {
    const byte = bytes[index];
    if (byte !== space && byte !== tab && byte !== comma) break;
    index += 1;
  }
  return index;
}
