/**
 * Reads a stream after release at the price of a byte search: only frames that hold one of the protocol's markers are
 * decoded, and those after the protocol's end. Changes nothing, delays nothing.
 */

import { ByteBuffer } from "./byte-buffer.js";
import { concatBytes, lastByte, lastSequenceNumber, type MarkerSearch } from "./byte-search.js";
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
  readonly #tail = new ByteBuffer();
  #marked = false;
  /** Every frame is decoded from here on. */
  everything = false;
  #blind = false;
  #sequenceNumber: number | undefined;

  /** @param begun the bytes of a frame that had begun before release */
  constructor(options: WatchOptions, begun: readonly Uint8Array[]) {
    this.#options = options;
    for (const part of begun) {
      this.#marked ||= this.#firstMarker(part) !== -1;
      this.#keep(part);
    }
  }

  /** A frame was larger than `maxBytes`: it went by unread. */
  get blind(): boolean {
    return this.#blind;
  }
  /** The last `sequence_number` that went by in a complete frame. */
  get sequenceNumber(): number | undefined {
    return this.#sequenceNumber;
  }

  /** The frames worth judging that this chunk completes. */
  push(chunk: Uint8Array): readonly Frame[] {
    const marker = this.#firstMarker(chunk);
    const boundary = this.#boundary(chunk, chunk.length);
    if (boundary === 0) {
      this.#marked ||= marker !== -1;
      this.#keep(chunk);
      return none;
    }
    const frames = this.#complete(chunk.subarray(0, boundary), marker);
    this.#tail.clear();
    this.#marked = false;
    if (boundary < chunk.length) {
      const rest = chunk.subarray(boundary);
      this.#marked = marker !== -1 && this.#options.search.first(rest) !== -1;
      this.#keep(rest);
    }
    return frames;
  }

  /** The unterminated last frame. */
  end(): readonly Frame[] {
    if (!this.#marked && !this.everything) return none;
    const decoder = this.#options.createDecoder();
    return [...decoder.push(this.#kept()), ...decoder.end()];
  }

  /**
   * @param last what completes the frame under way, and whole frames behind it
   * @param marker where the first marker begins; at most 0 where it is in the frame under way; -1: nowhere
   */
  #complete(last: Uint8Array, marker: number): readonly Frame[] {
    const { numbered, createDecoder } = this.#options;
    const whole =
      this.everything || this.#marked || (marker !== -1 && marker < last.length && this.#boundary(last, marker) === 0);
    let number = numbered ? lastSequenceNumber(last) : undefined;
    let bytes = last;
    if (this.#tail.length > 0 && (whole || (numbered && number === undefined))) {
      this.#tail.append(last, 0, last.length);
      bytes = this.#kept();
      if (numbered) number ??= lastSequenceNumber(bytes);
    }
    this.#sequenceNumber = number ?? this.#sequenceNumber;
    if (whole) return createDecoder().push(bytes);
    // From the frame with the first marker on: what comes before it in a large chunk is not worth a parse.
    return marker === -1 || marker >= last.length
      ? none
      : createDecoder().push(last.subarray(this.#boundary(last, marker)));
  }

  #kept(): Uint8Array {
    return this.#tail.bytes.subarray(0, this.#tail.length);
  }

  #keep(chunk: Uint8Array): void {
    if (this.#tail.length + chunk.length > this.#options.maxBytes) {
      this.#blind = true;
      this.#tail.clear();
      this.#marked = false;
      return;
    }
    this.#tail.append(chunk, 0, chunk.length);
  }

  /** Where the first marker begins in the chunk: 0 for one that lies over the border with what came before; -1: nowhere. */
  #firstMarker(chunk: Uint8Array): number {
    const { search } = this.#options;
    const { length } = this.#tail;
    if (length > 0) {
      const before = this.#tail.bytes.subarray(Math.max(0, length - search.overlap), length);
      if (search.first(concatBytes([before, chunk.subarray(0, search.overlap)])) !== -1) return 0;
    }
    return search.first(chunk);
  }

  /** Where the last frame that is complete before `end` ends in the chunk; 0 if none does. */
  #boundary(chunk: Uint8Array, end: number): number {
    const last = end - 1;
    if (this.#options.framing === "line") return lastByte(chunk, LF, last) + 1;
    // Most chunks end with a blank line: the first look decides, without a search.
    if (last >= 0 && this.#endsBlankLine(chunk, last)) return end;
    let lf = lastByte(chunk, LF, last);
    let cr = lastByte(chunk, CR, last);
    for (let at = Math.max(lf, cr); at >= 0; at = Math.max(lf, cr)) {
      if (this.#endsBlankLine(chunk, at)) return at + 1;
      if (at === lf) lf = lastByte(chunk, LF, at - 1);
      else cr = lastByte(chunk, CR, at - 1);
    }
    return 0;
  }

  /** Whether the byte at `at` closes a blank line: it ends a line, and so do the bytes before it. */
  #endsBlankLine(chunk: Uint8Array, at: number): boolean {
    if (chunk[at] !== LF && chunk[at] !== CR) return false;
    const before = (distance: number): number | undefined =>
      at >= distance ? chunk[at - distance] : this.#tailByte(distance - at);
    if (chunk[at] === CR) return before(1) === CR || before(1) === LF;
    if (before(1) === LF) return true;
    return before(1) === CR && (before(2) === LF || before(2) === CR);
  }

  /** The byte `distance` (from 1) before the end of the tail. */
  #tailByte(distance: number): number | undefined {
    const { bytes, length } = this.#tail;
    return distance <= length ? bytes[length - distance] : undefined;
  }
}
