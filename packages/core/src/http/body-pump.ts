/** From a released body to a client: one write a tick, back-pressure, and a limit on how long a client may take nothing. */

import type { ServerResponse } from "node:http";
import type { Clock } from "../clock.js";
import type { BodyEnd, BodySink, CancelReason, ReleasedBody } from "../events.js";
import { TickBatch } from "./tick-batch.js";
import { WriteStallWatch } from "./write-stall.js";

/** Where the bytes go: the response itself, or the stream that a framework reads. */
export interface Outlet {
  /** False: full. `BodyPump.drained()` is called when it takes bytes again. */
  write(bytes: Uint8Array): boolean;
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

export class BodyPump implements BodySink {
  readonly #body: ReleasedBody;
  readonly #outlet: Outlet;
  readonly #res: ServerResponse;
  readonly #clock: Clock;
  #stall: WriteStallWatch;
  readonly #batch: TickBatch;
  /** The outlet is full. */
  #blocked = false;
  /** The body was told to stop, and waits for `resume()`. */
  #paused = false;
  #ended = false;

  constructor({ body, outlet, res, writeStallTimeoutMs, clock }: BodyPumpOptions) {
    this.#body = body;
    this.#outlet = outlet;
    this.#res = res;
    this.#clock = clock;
    this.#batch = new TickBatch((bytes) => this.#push(bytes));
    this.#stall = this.#watch(writeStallTimeoutMs);
  }

  start(): void {
    this.#body.pipeTo(this);
  }

  write(chunk: Uint8Array): boolean {
    if (this.#ended) return false;
    this.#batch.add(chunk);
    this.#paused = this.#blocked || this.#batch.bytes >= maxBatchBytes;
    return !this.#paused;
  }

  end(end: BodyEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    const last = this.#batch.take();
    if (end.type === "finish") {
      this.#outlet.finish(last);
    } else {
      // A process that wants to end waits for nobody who does not read.
      if (end.failure.kind === "shutdown") {
        if (this.#blocked) return void this.#res.destroy();
        this.#stall.disarm();
        this.#stall = this.#watch(farewellMs);
      }
      if (last !== undefined) this.#outlet.write(last);
      this.#outlet.fail();
    }
    // What is written still has to be taken; `close()` ends the watch.
    this.#stall.arm();
  }

  /** The outlet takes bytes again. */
  drained(): void {
    this.#blocked = false;
    if (this.#ended) return;
    this.#stall.disarm();
    this.#resume();
  }

  /** The body is not wanted any more. Nothing, when it has ended. */
  cancel(reason: CancelReason): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#batch.take();
    this.#body.cancel(reason);
  }

  /** The connection is gone: the client left, or everything was sent. Ends all timers. */
  close(): void {
    this.#stall.disarm();
    this.cancel("client-abort");
  }

  #watch(timeoutMs: number): WriteStallWatch {
    return new WriteStallWatch(this.#res, timeoutMs, this.#clock, () => {
      this.cancel("write-stall");
      this.#res.destroy();
    });
  }

  #push(bytes: Uint8Array): void {
    if (this.#ended) return;
    if (this.#outlet.write(bytes)) {
      if (!this.#blocked) this.#resume();
      return;
    }
    this.#blocked = true;
    this.#stall.arm();
  }

  #resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#body.resume();
  }
}
