/** Finds the first byte of a body that says what it is. */

import { ByteBuffer } from "./byte-buffer.js";

const tab = 0x09;
const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const space = 0x20;
const byteOrderMark: Uint8Array = new Uint8Array([0xef, 0xbb, 0xbf]);

/** Skips one UTF-8 byte order mark, then spaces, tabs and line ends. */
export class BodyStart {
  /** The first byte that is not white space. Set once `find` has returned true. */
  first: number = -1;
  /** Where it lies. */
  offset: number = 0;
  /** Where its line begins. */
  lineStart: number = 0;
  /** The part of that line that came in earlier chunks: white space, or the beginning of what is no mark after all. */
  readonly prefix: ByteBuffer = new ByteBuffer();
  #markBytes: number = 0;
  #markDone: boolean = false;

  /** All that came is one or two bytes of a mark: text, should the stream end here. */
  get insideMark(): boolean {
    return !this.#markDone && this.#markBytes > 0;
  }

  /** @param base offset of `chunk[0]` in the stream */
  find(chunk: Uint8Array, base: number): boolean {
    let index = this.#markDone ? 0 : this.#skipMark(chunk, base);
    if (this.first >= 0) return true;
    if (!this.#markDone) {
      this.prefix.append(chunk, 0, chunk.length);
      return false;
    }
    for (; index < chunk.length; index++) {
      const byte = chunk[index] ?? 0;
      if (byte === lineFeed || byte === carriageReturn) {
        this.prefix.clear();
        this.lineStart = base + index + 1;
      } else if (byte !== space && byte !== tab) {
        this.first = byte;
        this.offset = base + index;
        return true;
      }
    }
    const from = Math.max(this.lineStart - base, 0);
    if (from < chunk.length) this.prefix.append(chunk, from, chunk.length);
    return false;
  }

  /** @returns the index after the mark */
  #skipMark(chunk: Uint8Array, base: number): number {
    for (let index = 0; index < chunk.length; index++) {
      if (chunk[index] !== byteOrderMark[this.#markBytes]) {
        this.#markDone = true;
        // A mark that breaks off is text, and its first byte the first of the body.
        if (this.#markBytes > 0) this.first = 0xef;
        return 0;
      }
      this.#markBytes += 1;
      if (this.#markBytes === byteOrderMark.length) {
        this.#markDone = true;
        this.prefix.clear();
        this.lineStart = base + index + 1;
        return index + 1;
      }
    }
    return 0;
  }
}
