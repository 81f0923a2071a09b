/**
 * The body after release: held chunks first, then what still comes. Pushed into a sink where the reader has one, else
 * queued for an iterator with back-pressure.
 */

import type { Failure } from "../errors.js";
import type { BodyEnd, BodySink, CancelReason, ReleasedBody } from "../events.js";
import { BodyReader } from "./body-reader.js";

/** What the body needs of whoever feeds it. */
export interface BodySource {
  pause(): void;
  resume(): void;
  /** The reader left before the end. */
  cancel(reason: CancelReason): void;
  /** The reader has everything, the end included. */
  handedOver(): void;
}

/** Queued bytes at which the source is paused while nobody reads. */
const highWaterMark = 65_536;

/** Larger holds are handed over in parts. */
const maxJoinedBytes = 65_536;

export class StreamBody implements ReleasedBody {
  readonly #source: BodySource;
  #queue: Uint8Array[];
  #queuedBytes = 0;
  #sink: BodySink | undefined;
  #paused = false;
  #end: BodyEnd | undefined;
  #ended = false;
  #onCancel: (() => void) | undefined;

  constructor(source: BodySource, held: Uint8Array[]) {
    this.#source = source;
    this.#queue = held;
    for (const chunk of held) this.#queuedBytes += chunk.length;
  }

  /** From the source. */
  push(chunk: Uint8Array): void {
    if (this.#ended || this.#end !== undefined) return;
    if (this.#sink !== undefined && !this.#paused && this.#queue.length === 0) {
      if (!this.#sink.write(chunk)) this.#pause();
      return;
    }
    this.#queue.push(chunk);
    this.#queuedBytes += chunk.length;
    if (this.#queuedBytes > highWaterMark) this.#pause();
  }

  /** From the source: no more chunks. */
  finish(end: BodyEnd): void {
    if (this.#ended || this.#end !== undefined) return;
    this.#end = end;
    this.#flush();
  }

  /** Ends the body now, whatever is still queued for a reader that takes nothing. */
  breakOff(failure: Failure): void {
    if (this.#ended) return;
    this.#end = { type: "fail", failure };
    if (this.#sink === undefined) return;
    if (this.#paused) this.#queue = [];
    this.#flush();
  }

  pipeTo(sink: BodySink): void {
    if (this.#sink !== undefined) throw new Error("the body is already being read");
    this.#sink = sink;
    this.#paused = false;
    this.#flush();
    if (!this.#paused) this.#source.resume();
  }

  resume(): void {
    if (!this.#paused || this.#ended) return;
    this.#paused = false;
    this.#flush();
    if (!this.#paused && !this.#ended) this.#source.resume();
  }

  cancel(reason: CancelReason = "client-abort"): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#queue = [];
    this.#source.cancel(reason);
    this.#onCancel?.();
  }

  #pause(): void {
    if (this.#paused) return;
    this.#paused = true;
    this.#source.pause();
  }

  #flush(): void {
    const sink = this.#sink;
    if (sink === undefined) return;
    while (!this.#paused && this.#queue.length > 0) {
      const chunk = this.#next();
      this.#queuedBytes -= chunk.length;
      if (!sink.write(chunk)) this.#pause();
    }
    if (this.#queue.length > 0 || this.#end === undefined || this.#ended) return;
    // Also while paused: the sink's own buffer holds the last chunk, and nothing more will come.
    this.#ended = true;
    sink.end(this.#end);
    this.#source.handedOver();
  }

  /** What was queued goes on as one chunk, up to a limit: written one by one, each would pay for a framing of its own. */
  #next(): Uint8Array {
    const [first] = this.#queue;
    if (this.#queue.length === 1) this.#queue = [];
    else {
      let count = 0;
      let bytes = 0;
      for (const { length } of this.#queue) {
        if (count > 0 && bytes + length > maxJoinedBytes) break;
        bytes += length;
        count += 1;
      }
      const taken = this.#queue.splice(0, count);
      if (count > 1) return Buffer.concat(taken, bytes);
    }
    return first as Uint8Array;
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array, undefined> {
    const reader = new BodyReader(this);
    const cancelled = this.#ended;
    this.pipeTo(reader);
    this.#onCancel = () => reader.cancelled();
    if (cancelled) reader.cancelled();
    return reader;
  }
}
