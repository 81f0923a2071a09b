/**
 * Reads a stream after release at the price of a byte search: only frames that hold one of the protocol's markers are
 * decoded, and those after the protocol's end. Changes nothing, delays nothing.
 */

import { concatBytes, lastSequenceNumber, type MarkerSearch } from "./byte-search.js";
import type { Frame, FrameDecoder } from "./frame.js";

const LF = 10;
const CR = 13;
const none: readonly Frame[] = [];

export interface WatchOptions {
  readonly framing: "blank-line" | "line";
  readonly search: MarkerSearch;
  readonly createDecoder: () => FrameDecoder;
  /** Keep account of `sequence_number`. */
  readonly numbered: boolean;
  /** Most bytes kept of a frame that is not complete yet. */
  readonly maxBytes: number;
}

export class Watch {
  readonly #options: WatchOptions;
  /** The frame under way. */
  #tail: Uint8Array[] = [];
  #tailBytes = 0;
  #marked = false;
  /** Every frame is decoded from here on. */
  everything = false;
  /** A frame was larger than `maxBytes`: it went by unread. */
  blind = false;
  /** The last `sequence_number` that went by in a complete frame. */
  sequenceNumber: number | undefined;

  /** @param begun the bytes of a frame that had begun before release */
  constructor(options: WatchOptions, begun: Uint8Array) {
    this.#options = options;
    if (begun.length === 0) return;
    this.#marked = options.search.hits(begun);
    this.#keep(begun);
  }

  /** The frames worth judging that this chunk completes. */
  push(chunk: Uint8Array): readonly Frame[] {
    const marked = this.#options.search.hits(chunk) || this.#straddles(chunk);
    const boundary = this.#boundary(chunk);
    if (boundary === 0) {
      this.#marked ||= marked;
      this.#keep(chunk);
      return none;
    }
    if (this.#options.numbered) this.#number(chunk.subarray(0, boundary));
    const judged = marked || this.#marked || this.everything ? this.#decode(chunk.subarray(0, boundary)) : none;
    this.#drop();
    if (boundary < chunk.length) {
      const rest = chunk.subarray(boundary);
      this.#marked = marked && this.#options.search.hits(rest);
      this.#keep(rest);
    }
    return judged;
  }

  /** The unterminated last frame. */
  end(): readonly Frame[] {
    if (!this.#marked && !this.everything) return none;
    const decoder = this.#options.createDecoder();
    return [...decoder.push(concatBytes(this.#tail)), ...decoder.end()];
  }

  #number(last: Uint8Array): void {
    const found = lastSequenceNumber(last) ?? (this.#tailBytes > 0 ? lastSequenceNumber(concatBytes([...this.#tail, last])) : undefined);
    this.sequenceNumber = found ?? this.sequenceNumber;
  }

  #decode(last: Uint8Array): readonly Frame[] {
    return this.#options.createDecoder().push(this.#tail.length === 0 ? last : concatBytes([...this.#tail, last]));
  }

  #keep(chunk: Uint8Array): void {
    if (this.#tailBytes + chunk.length > this.#options.maxBytes) {
      this.blind = true;
      this.#drop();
      return;
    }
    // A small view would pin the whole read it was cut from.
    this.#tail.push(chunk.length * 2 < chunk.buffer.byteLength ? new Uint8Array(chunk) : chunk);
    this.#tailBytes += chunk.length;
  }

  #drop(): void {
    if (this.#tailBytes > 0) this.#tail = [];
    this.#tailBytes = 0;
    this.#marked = false;
  }

  #straddles(chunk: Uint8Array): boolean {
    if (this.#tailBytes === 0) return false;
    const { search } = this.#options;
    let before: Uint8Array = this.#tail[this.#tail.length - 1] ?? chunk.subarray(0, 0);
    if (before.length < search.overlap && this.#tail.length > 1) before = concatBytes(this.#tail.slice(-search.overlap));
    const left = before.subarray(Math.max(0, before.length - search.overlap));
    return search.hits(concatBytes([left, chunk.subarray(0, search.overlap)]));
  }

  /** Where the last complete frame ends in the chunk; 0 if none does. */
  #boundary(chunk: Uint8Array): number {
    if (this.#options.framing === "line") return chunk.lastIndexOf(LF) + 1;
    // Most chunks end with a blank line: the first look decides, without a search.
    if (chunk.length > 0 && this.#endsBlankLine(chunk, chunk.length - 1)) return chunk.length;
    let lf = chunk.lastIndexOf(LF);
    let cr = chunk.lastIndexOf(CR);
    for (let at = Math.max(lf, cr); at >= 0; at = Math.max(lf, cr)) {
      if (this.#endsBlankLine(chunk, at)) return at + 1;
      if (at === lf) lf = at === 0 ? -1 : chunk.lastIndexOf(LF, at - 1);
      else cr = at === 0 ? -1 : chunk.lastIndexOf(CR, at - 1);
    }
    return 0;
  }

  /** Whether the byte at `at` closes a blank line: it ends a line, and so do the bytes before it. */
  #endsBlankLine(chunk: Uint8Array, at: number): boolean {
    if (chunk[at] !== LF && chunk[at] !== CR) return false;
    const before = (distance: number): number | undefined => (at >= distance ? chunk[at - distance] : this.#tailByte(distance - at));
    if (chunk[at] === CR) return before(1) === CR || before(1) === LF;
    if (before(1) === LF) return true;
    return before(1) === CR && (before(2) === LF || before(2) === CR);
  }

  /** The byte `distance` (from 1) before the end of the tail. */
  #tailByte(distance: number): number | undefined {
    let left = distance;
    for (let index = this.#tail.length - 1; index >= 0; index -= 1) {
      const chunk = this.#tail[index] as Uint8Array;
      if (left <= chunk.length) return chunk[chunk.length - left];
      left -= chunk.length;
    }
    return undefined;
  }
}
