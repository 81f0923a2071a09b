/**
 * How many requests are served at once, and how many wait. The queue is the gateway's own because a request that waits in
 * the HTTP client's cannot be cancelled.
 */

import type { Clock, Timer } from "./clock.js";
import type { Failure } from "./errors.js";
import { clientAbort, gatewayOverload } from "./gate/failures.js";
import type { ClientSignal } from "./request.js";

export interface AdmissionLimits {
  /** Undefined: no limit, and nobody waits. */
  readonly maxConcurrent: number | undefined;
  readonly maxQueue: number;
  /** In ms. */
  readonly queueTimeoutMs: number;
}

/** One that waits: a link of the chain of those that do. */
interface Waiting {
  before: Waiting | undefined;
  after: Waiting | undefined;
  enter(): void;
  refuse(failure: Failure): void;
}

/** First come, first served. Every `enter` that succeeds is followed by one `leave`. */
export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #clock: Clock;
  /** In the order of arrival. Linked, so that one in the middle leaves at once; for why it is no `Set` see `OpenRequests`. */
  #first: Waiting | undefined;
  #last: Waiting | undefined;
  #waiting = 0;
  #served = 0;

  constructor(limits: AdmissionLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Neither a place nor a place in the queue is left. */
  get full(): boolean {
    const { maxConcurrent = Infinity, maxQueue } = this.#limits;
    return this.#served >= maxConcurrent && this.#waiting >= maxQueue;
  }

  /** Takes a place if one is free. Those who wait come first: a place that is left goes to them. */
  tryEnter(): boolean {
    if (this.#served >= (this.#limits.maxConcurrent ?? Infinity)) return false;
    this.#served += 1;
    return true;
  }

  /**
   * Waits for a place, after `tryEnter` found none.
   *
   * @returns undefined with a place; else why there is none: too many wait, for too long, or the client left
   */
  wait(signal: ClientSignal): Promise<Failure | undefined> {
    if (signal.aborted) return Promise.resolve(clientAbort());
    if (this.full) return Promise.resolve(gatewayOverload());
    return new Promise((resolve) => {
      let timer: Timer | undefined;
      const settle = (failure: Failure | undefined): void => {
        timer?.cancel();
        signal.removeEventListener("abort", onAbort);
        this.#remove(waiting);
        resolve(failure);
      };
      const onAbort = (): void => settle(clientAbort());
      const waiting: Waiting = { before: this.#last, after: undefined, enter: () => settle(undefined), refuse: settle };
      this.#append(waiting);
      signal.addEventListener("abort", onAbort);
      timer = this.#clock.setTimer(this.#clock.now() + this.#limits.queueTimeoutMs, () => settle(gatewayOverload()));
    });
  }

  /** Gives the place to the one that has waited longest. */
  leave(): void {
    if (this.#first === undefined) this.#served -= 1;
    else this.#first.enter();
  }

  /** Sends everybody away who waits. */
  refuseWaiting(failure: Failure): void {
    while (this.#first !== undefined) this.#first.refuse(failure);
  }

  #append(waiting: Waiting): void {
    if (this.#last === undefined) this.#first = waiting;
    else this.#last.after = waiting;
    this.#last = waiting;
    this.#waiting += 1;
  }

  #remove(waiting: Waiting): void {
    const { before, after } = waiting;
    if (before === undefined) this.#first = after;
    else before.after = after;
    if (after === undefined) this.#last = before;
    else after.before = before;
    // One that is gone must not keep those alive that came after it.
    waiting.before = undefined;
    waiting.after = undefined;
    this.#waiting -= 1;
  }
}
