/** From a released body to a client: back-pressure, and a limit on how long a client may take nothing. */

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
  /** The body is complete. */
  finish(): void;
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

export class BodyPump implements BodySink, Closable, Drainable {
  readonly #body: ReleasedBody;
  readonly #outlet: Outlet;
  readonly #res: ServerResponse;
  readonly #clock: Clock;
  #stallTimeoutMs: number;
  /** Made for the first client that does not take its bytes at once. */
  #stall: WriteStallWatch | undefined;
  #watchScheduled = false;
  /** The outlet is full, and the body waits for `resume()`. */
  #blocked = false;
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

  /** At once: what a tick brings is one chunk already, and a response hands what it gets to the socket once a tick. */
  write(chunk: Uint8Array): boolean {
    if (this.#ended) return false;
    if (this.#outlet.write(chunk, this)) return true;
    this.#blocked = true;
    this.#watchLater();
    return false;
  }

  end(end: BodyEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    if (end.type === "finish") this.#outlet.finish();
    else this.#fail(end.failure);
    // What is written still has to be taken; `close()` ends the watch.
    this.#watchLater();
  }

  /** The outlet takes bytes again. */
  drained(): void {
    if (!this.#blocked) return;
    this.#blocked = false;
    if (this.#ended) return;
    this.#stall?.disarm();
    this.#body.resume();
  }

  /** The body is not wanted any more. Nothing, when it has ended. */
  cancel(reason: CancelReason): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#body.cancel(reason);
  }

  /** The connection is gone: the client left, or everything was sent. Ends all timers. */
  close(): void {
    this.#closed = true;
    this.#stall?.disarm();
    this.cancel("client-abort");
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
    this.#outlet.fail();
  }

  /** Not at once: a response hands its bytes to the socket at the end of the tick, and most clients take them there. */
  #watchLater(): void {
    if (this.#watchScheduled || this.#closed) return;
    this.#watchScheduled = true;
    process.nextTick(watchClient, this);
  }
}

function watchClient(pump: BodyPump): void {
  pump.watch();
}
