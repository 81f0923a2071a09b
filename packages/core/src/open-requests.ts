/** The requests under way, so that closing can wait for them and end them. */

import type { Clock } from "./clock.js";
import type { Failure } from "./errors.js";

export interface OpenRequest {
  /** Where it stands among the open ones. Set by `OpenRequests` alone. */
  place?: number | undefined;
  /** Ends it: refused where nothing was sent, broken off where something was. Idempotent. */
  stop(failure: Failure): void;
}

export class OpenRequests {
  /**
   * Not a `Set`: the tables it has outgrown point to their successors. Once one of them is in the old generation, every
   * later table, and every request that stood in one, lives until the next full collection.
   */
  readonly #open: OpenRequest[] = [];
  #onNone: (() => void) | undefined;

  add(request: OpenRequest): void {
    request.place = this.#open.push(request) - 1;
  }

  delete(request: OpenRequest): void {
    const { place } = request;
    if (place === undefined) return;
    request.place = undefined;
    const last = this.#open.pop() as OpenRequest;
    if (last !== request) {
      this.#open[place] = last;
      last.place = place;
    }
    if (this.#open.length === 0) this.#onNone?.();
  }

  stop(failure: Failure): void {
    // A copy: those that end at once leave the list.
    for (const request of this.#open.slice()) request.stop(failure);
  }

  /** Waits until none is left, at most for `withinMs`. */
  async settle(clock: Clock, withinMs: number): Promise<void> {
    if (this.#open.length === 0) return;
    await new Promise<void>((resolve) => {
      const timer = clock.setTimer(clock.now() + withinMs, resolve);
      this.#onNone = () => {
        timer.cancel();
        resolve();
      };
    });
    this.#onNone = undefined;
  }
}
