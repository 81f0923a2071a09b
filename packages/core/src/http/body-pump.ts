/** From a released body to a client: one write a tick, back-pressure, and a limit on how long a client may take nothing. */

import type { ServerResponse } from "node:http";
import type { Clock } from "../clock.js";
import type { Failure } from "../errors.js";
import type { BodyEnd, BodySink, CancelReason, ReleasedBody } from "../events.js";
import type { Closable } from "./client-connection.js";
import { WriteStallWatch } from "./write-stall.js";

/** What waits for an outlet to take bytes again. */
export interface Drainable {
  drained(): void;
}

/** Where the bytes go: the response itself, or the stream that a framework reads. */
export interface Outlet {
  /** Nothing of what was written waits in this process. Absent: not known. */
  readonly idle?: boolean;
  /** False: full. The outlet calls `pump.drained()` when it takes bytes again. */
  write(bytes: Uint8Array, pump: Drainable): boolean;
  /** The body is complete; `last` are its last bytes, where some are left. */
  finish(last: Uint8Array | undefined): void;
  /** The body is broken: the connection is destroyed once everything that was written is flushed. */
  fail(): void;
}

export interface BodyPumpOptions {
  readonly body: ReleasedBody;
  readonly outlet: Outlet;
  /** Whose client may stall. Destroyed when it does. */
  readonly res: ServerResponse;
  readonly writeStallTimeoutMs: number;
  readonly clock: Clock;
}

/** How long a client may take nothing of the end of its answer when the gateway closes, in ms. */
const farewellMs = 1_000;

/** More than this in one tick, such as a large hold, is written in several. */
const maxBatchBytes = 65_536;

export class BodyPump implements BodySink, Closable, Drainable {
  readonly #body: ReleasedBody;
  readonly #outlet: Outlet;
  readonly #res: ServerResponse;
  readonly #clock: Clock;
  #stallTimeoutMs: number;
  /** Made for the first client that does not take its bytes at once. */
  #stall: WriteStallWatch | undefined;
  #watchScheduled = false;
  /** The chunks of this tick. Written one by one, each would pay for a framing of its own. */
  #first: Uint8Array | undefined;
  #others: Uint8Array[] | undefined;
  #batchBytes = 0;
  #flushScheduled = false;
  /** The outlet is full. */
  #blocked = false;
  /** The body was told to stop, and waits for `resume()`. */
  #paused = false;
  #ended = false;
  #closed = false;

  constructor({ body, outlet, res, writeStallTimeoutMs, clock }: BodyPumpOptions) {
    this.#body = body;
    this.#outlet = outlet;
    this.#res = res;
    this.#clock = clock;
    this.#stallTimeoutMs = writeStallTimeoutMs;
  }

  start(): void {
    this.#body.pipeTo(this);
  }

  write(chunk: Uint8Array): boolean {
    if (this.#ended) return false;
    if (this.#first === undefined) this.#first = chunk;
    else (this.#others ??= []).push(chunk);
    this.#batchBytes += chunk.byteLength;
    if (!this.#flushScheduled) {
      this.#flushScheduled = true;
      process.nextTick(flushBatch, this);
    }
    this.#paused = this.#blocked || this.#batchBytes >= maxBatchBytes;
    return !this.#paused;
  }

  end(end: BodyEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    if (end.type === "finish") this.#outlet.finish(this.#takeBatch());
    else this.#fail(end.failure);
    // What is written still has to be taken; `close()` ends the watch.
    this.#watchLater();
  }

  /** The outlet takes bytes again. */
  drained(): void {
    this.#blocked = false;
    if (this.#ended) return;
    this.#stall?.disarm();
    this.#resume();
  }

  /** The body is not wanted any more. Nothing, when it has ended. */
  cancel(reason: CancelReason): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#takeBatch();
    this.#body.cancel(reason);
  }

  /** The connection is gone: the client left, or everything was sent. Ends all timers. */
  close(): void {
    this.#closed = true;
    this.#stall?.disarm();
    this.cancel("client-abort");
  }

  /** @internal Writes what came in the tick that ends. */
  flush(): void {
    this.#flushScheduled = false;
    if (this.#ended) return;
    const bytes = this.#takeBatch();
    if (bytes === undefined) return;
    if (this.#outlet.write(bytes, this)) {
      if (!this.#blocked) this.#resume();
      return;
    }
    this.#blocked = true;
    this.#watchLater();
  }

  /** @internal Watches the client if it has not taken what was written by now. */
  watch(): void {
    this.#watchScheduled = false;
    if (this.#closed || (!this.#blocked && !this.#ended) || this.#outlet.idle === true) return;
    this.#stall ??= new WriteStallWatch(this.#res, this.#stallTimeoutMs, this.#clock, () => {
      this.cancel("write-stall");
      this.#res.destroy();
    });
    this.#stall.arm();
  }

  #fail(failure: Failure): void {
    // A process that wants to end waits for nobody who does not read.
    if (failure.kind === "shutdown") {
      if (this.#blocked) return void this.#res.destroy();
      this.#stall?.disarm();
      this.#stall = undefined;
      this.#stallTimeoutMs = farewellMs;
    }
    const last = this.#takeBatch();
    if (last !== undefined) this.#outlet.write(last, this);
    this.#outlet.fail();
  }

  /** Not at once: a response hands its bytes to the socket at the end of the tick, and most clients take them there. */
  #watchLater(): void {
    if (this.#watchScheduled || this.#closed) return;
    this.#watchScheduled = true;
    process.nextTick(watchClient, this);
  }

  #takeBatch(): Uint8Array | undefined {
    const first = this.#first;
    const others = this.#others;
    if (first === undefined) return undefined;
    const bytes = others === undefined ? first : Buffer.concat([first, ...others], this.#batchBytes);
    this.#first = undefined;
    this.#others = undefined;
    this.#batchBytes = 0;
    return bytes;
  }

  #resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#body.resume();
  }
}

// Functions of the module, so that no closure is made a tick.

function flushBatch(pump: BodyPump): void {
  pump.flush();
}

function watchClient(pump: BodyPump): void {
  pump.watch();
}
