/**
 * Bytes to frames, for text bodies. What a body is, its first byte that is not white space says, not its content type:
 * providers send JSON and HTML errors as `text/event-stream`.
 *
 * The frames of a byte string are the same however it is split into chunks.
 */

import { BodyStart } from "./body-start.js";
import type { Frame, FrameDecoder } from "./frame.js";
import { JsonFrames, opensJson } from "./json-frames.js";
import { NdjsonFrames } from "./ndjson-frames.js";
import { SseFrames } from "./sse-frames.js";

const lessThan = 0x3c;

/** What reads one kind of body, once the kind is known. */
interface BodyFrames {
  readonly pendingBytes: number;
  /** Appends what `chunk`, from index `from` on, completes. `base` is the offset of `chunk[0]` in the stream. */
  push(chunk: Uint8Array, from: number, base: number, frames: Frame[]): void;
  /** `total` is the length of the stream. */
  end(total: number, frames: Frame[]): void;
}

/**
 * For protocols whose streams are server-sent events. A body that starts with `{` or `[` is read as JSON, one that starts
 * with `<` is `foreign` at once.
 */
export function createStreamDecoder(): FrameDecoder {
  return new TextDecoding("sse");
}

/** For protocols whose streams are newline-delimited JSON. A body that starts with `<` is `foreign` at once. */
export function createNdjsonDecoder(): FrameDecoder {
  return new TextDecoding("ndjson");
}

/** Server-sent events from the middle of a stream on: the first byte says nothing about the body any more. */
export function createEventDecoder(): FrameDecoder {
  return new TextDecoding("events");
}

class TextDecoding implements FrameDecoder {
  readonly #framing: "sse" | "ndjson" | "events";
  /** Until the first byte that is not white space. */
  #start: BodyStart | undefined = new BodyStart();
  /** After it. Neither: the body is foreign or has ended, and what comes is ignored. */
  #body: BodyFrames | undefined;
  #total: number = 0;

  constructor(framing: "sse" | "ndjson" | "events") {
    this.#framing = framing;
    if (framing !== "events") return;
    this.#start = undefined;
    this.#body = new SseFrames();
  }

  get pendingBytes(): number {
    if (this.#body !== undefined) return this.#body.pendingBytes;
    return this.#start === undefined ? 0 : this.#start.prefix.length;
  }

  push(chunk: Uint8Array): Frame[] {
    const frames: Frame[] = [];
    const base = this.#total;
    this.#total = base + chunk.length;
    if (this.#body !== undefined) {
      this.#body.push(chunk, 0, base, frames);
    } else if (this.#start?.find(chunk, base)) {
      this.#begin(this.#start, chunk, base, frames);
      this.#start = undefined;
    }
    return frames;
  }

  end(): Frame[] {
    const frames: Frame[] = [];
    if (this.#start?.insideMark) {
      this.#beginStream(this.#start, frames);
    }
    this.#body?.end(this.#total, frames);
    this.#start = undefined;
    this.#body = undefined;
    return frames;
  }

  #begin(start: BodyStart, chunk: Uint8Array, base: number, frames: Frame[]): void {
    if (start.first === lessThan) {
      frames.push({ kind: "foreign", start: start.offset, end: start.offset + 1 });
    } else if (this.#framing === "sse" && opensJson(start.first)) {
      this.#body = new JsonFrames(start.offset);
      this.#body.push(chunk, start.offset - base, base, frames);
    } else {
      const body = this.#beginStream(start, frames);
      body.push(chunk, Math.max(start.lineStart - base, 0), base, frames);
    }
  }

  /** White space is part of the first line, and may make it another field. */
  #beginStream(start: BodyStart, frames: Frame[]): BodyFrames {
    const body = this.#framing === "sse" ? new SseFrames() : new NdjsonFrames();
    const prefix = start.prefix;
    if (prefix.length > 0) {
      body.push(prefix.bytes.subarray(0, prefix.length), 0, start.lineStart, frames);
    }
    this.#body = body;
    return body;
  }
}
