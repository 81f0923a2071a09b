/**
 * How many requests are served at once, and how many wait. The queue is the gateway's own because a request that waits in
 * the HTTP client's cannot be cancelled.
 */

import type { Clock, Timer } from "./clock.js";
import type { Failure } from "./errors.js";
import { clientAbort, gatewayOverload } from "./gate/failures.js";

export interface AdmissionLimits {
  /** Undefined: no limit, and nobody waits. */
  readonly maxConcurrent: number | undefined;
  readonly maxQueue: number;
  /** In ms. */
  readonly queueTimeoutMs: number;
}

interface Waiting {
  enter(): void;
  refuse(failure: Failure): void;
}

/** First come, first served. Every `enter` that succeeds is followed by one `leave`. */
export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #clock: Clock;
  /** In the order of arrival: a `Set` also lets one in the middle leave at once. */
  readonly #waiting = new Set<Waiting>();
  #served = 0;

  constructor(limits: AdmissionLimits, clock: Clock) {
    this.#limits = limits;
    this.#clock = clock;
  }

  /** Neither a place nor a place in the queue is left. */
  get full(): boolean {
    const { maxConcurrent = Infinity, maxQueue } = this.#limits;
    return this.#served >= maxConcurrent && this.#waiting.size >= maxQueue;
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
  wait(signal: AbortSignal): Promise<Failure | undefined> {
    if (signal.aborted) return Promise.resolve(clientAbort());
    if (this.full) return Promise.resolve(gatewayOverload());
    return new Promise((resolve) => {
      let timer: Timer | undefined;
      const settle = (failure: Failure | undefined): void => {
        timer?.cancel();
        signal.removeEventListener("abort", onAbort);
        this.#waiting.delete(waiting);
        resolve(failure);
      };
      const onAbort = (): void => settle(clientAbort());
      const waiting: Waiting = { enter: () => settle(undefined), refuse: settle };
      this.#waiting.add(waiting);
      signal.addEventListener("abort", onAbort);
      timer = this.#clock.setTimer(this.#clock.now() + this.#limits.queueTimeoutMs, () => settle(gatewayOverload()));
    });
  }

  /** Gives the place to the one that has waited longest. */
  leave(): void {
    const [next] = this.#waiting;
    if (next === undefined) this.#served -= 1;
    else next.enter();
  }

  /** Sends everybody away who waits. */
  refuseWaiting(failure: Failure): void {
    for (const waiting of this.#waiting) waiting.refuse(failure);
  }
}
