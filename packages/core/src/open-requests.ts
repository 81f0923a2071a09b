/** The requests under way, so that closing can wait for them and end them. */

import type { Clock } from "./clock.js";
import type { Failure } from "./errors.js";

export interface OpenRequest {
  /** Ends it: refused where nothing was sent, broken off where something was. Idempotent. */
  stop(failure: Failure): void;
}

export class OpenRequests {
  readonly #open = new Set<OpenRequest>();
  #onNone: (() => void) | undefined;

  add(request: OpenRequest): void {
    this.#open.add(request);
  }

  delete(request: OpenRequest): void {
    this.#open.delete(request);
    if (this.#open.size === 0) this.#onNone?.();
  }

  stop(failure: Failure): void {
    for (const request of this.#open) request.stop(failure);
  }

  /** Waits until none is left, at most for `withinMs`. */
  async settle(clock: Clock, withinMs: number): Promise<void> {
    if (this.#open.size === 0) return;
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
