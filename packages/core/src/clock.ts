/**
 * Time as a dependency. Drivers take a `Clock`; machines take times as arguments. Tests use `ManualClock` from
 * `@first-chunk/core/testing`.
 */

/** A pending timer. Whoever starts one ends it. */
export interface Timer {
  cancel(): void;
}

export interface Clock {
  /** Monotonic, in ms. Only differences mean something. */
  now(): number;
  /** Calls `callback` once, at or after `at` on this clock's scale, never before. */
  setTimer(at: number, callback: () => void): Timer;
}

/** The longest delay `setTimeout` keeps (2^31 - 1 ms, about 24.8 days); a longer one would fire at once. */
export const maxTimerMs = 2_147_483_647;

class SystemTimer implements Timer {
  readonly #at: number;
  readonly #callback: () => void;
  #handle: ReturnType<typeof setTimeout> | undefined;

  constructor(at: number, callback: () => void) {
    this.#at = at;
    this.#callback = callback;
    this.#arm();
  }

  #arm(): void {
    // Rounded up: setTimeout works in whole ms and may fire a fraction before its performance.now() deadline.
    const left = Math.max(Math.ceil(this.#at - performance.now()), 0);
    this.#handle = setTimeout(
      () => {
        if (performance.now() >= this.#at) this.#callback();
        else this.#arm();
      },
      Math.min(left, maxTimerMs),
    );
  }

  cancel(): void {
    clearTimeout(this.#handle);
  }
}

/** `performance.now()` and `setTimeout`. */
export const systemClock: Clock = {
  now: () => performance.now(),
  setTimer: (at, callback) => new SystemTimer(at, callback),
};
