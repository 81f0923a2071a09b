/**
 * The body after release: held chunks first, then what still comes. Pushed into a sink where the reader has one, else
 * queued for an iterator with back-pressure.
 */

import { GatewayError } from "../errors.js";
import type { BodyEnd, BodySink, CancelReason, ReleasedBody } from "../events.js";

/** What the body needs of whoever feeds it. */
export interface BodySource {
  pause(): void;
  resume(): void;
  /** The reader left before the end. */
  cancel(reason: CancelReason): void;
}

/** Queued bytes at which the source is paused while nobody reads. */
const highWaterMark = 65_536;

export class StreamBody implements ReleasedBody {
  readonly #source: BodySource;
  #queue: Uint8Array[];
  #queuedBytes = 0;
  #sink: BodySink | undefined;
  #paused = false;
  #end: BodyEnd | undefined;
  #ended = false;

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
  }

  #pause(): void {
    if (this.#paused) return;
    this.#paused = true;
    this.#source.pause();
  }

  #flush(): void {
    const sink = this.#sink;
    if (sink === undefined || this.#paused) return;
    while (this.#queue.length > 0) {
      const chunk = this.#queue.shift() as Uint8Array;
      this.#queuedBytes -= chunk.length;
      if (!sink.write(chunk)) {
        this.#pause();
        break;
      }
    }
    if (this.#queue.length > 0 || this.#end === undefined || this.#ended) return;
    // Also while paused: the sink's own buffer holds the last chunk, and nothing more will come.
    this.#ended = true;
    sink.end(this.#end);
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    const sink = new PullSink();
    this.pipeTo(sink);
    try {
      while (true) {
        const chunk = sink.shift();
        if (chunk !== undefined) {
          yield chunk;
          continue;
        }
        if (sink.ended !== undefined) {
          if (sink.ended.type === "fail") throw new GatewayError(sink.ended.failure);
          return;
        }
        this.resume();
        await sink.wait();
      }
    } finally {
      this.cancel();
    }
  }
}

/** A sink that is read by pulling. Takes one chunk, then asks for a pause. */
class PullSink implements BodySink {
  readonly #chunks: Uint8Array[] = [];
  #wake: (() => void) | undefined;
  ended: BodyEnd | undefined;

  write(chunk: Uint8Array): boolean {
    this.#chunks.push(chunk);
    this.#wake?.();
    return false;
  }

  end(end: BodyEnd): void {
    this.ended = end;
    this.#wake?.();
  }

  shift(): Uint8Array | undefined {
    return this.#chunks.shift();
  }

  /** Resolves when there is a chunk or the end. */
  wait(): Promise<void> {
    if (this.#chunks.length > 0 || this.ended !== undefined) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = () => {
        this.#wake = undefined;
        resolve();
      };
    });
  }
}
