/** Several deadlines, one timer. A deadline that moves later costs nothing until the timer fires. */

import type { Clock, Timer } from "../clock.js";

interface Deadline<Kind> {
  readonly kind: Kind;
  at: number;
  timeoutMs: number;
}

export class Deadlines<Kind extends string> {
  readonly #clock: Clock;
  readonly #onExpire: (kind: Kind, timeoutMs: number) => void;
  readonly #deadlines: Deadline<Kind>[] = [];
  #timer: Timer | undefined;
  #timerAt = Infinity;

  constructor(clock: Clock, onExpire: (kind: Kind, timeoutMs: number) => void) {
    this.#clock = clock;
    this.#onExpire = onExpire;
  }

  /** Sets or moves a deadline. `timeoutMs` is what is reported when it expires. */
  set(kind: Kind, at: number, timeoutMs: number): void {
    const known = this.#deadlines.find((deadline) => deadline.kind === kind);
    if (known === undefined) this.#deadlines.push({ kind, at, timeoutMs });
    else {
      known.at = at;
      known.timeoutMs = timeoutMs;
    }
    if (at < this.#timerAt) this.#arm(at);
  }

  clear(kind: Kind): void {
    const index = this.#deadlines.findIndex((deadline) => deadline.kind === kind);
    if (index !== -1) this.#deadlines.splice(index, 1);
    if (this.#deadlines.length === 0) this.stop();
  }

  /** Ends all. */
  stop(): void {
    this.#deadlines.length = 0;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerAt = Infinity;
  }

  #arm(at: number): void {
    this.#timer?.cancel();
    this.#timerAt = at;
    this.#timer = this.#clock.setTimer(at, () => {
      this.#timerAt = Infinity;
      this.#fire();
    });
  }

  #fire(): void {
    const now = this.#clock.now();
    // The earliest first: of two that are due, the one that came first decides.
    const due = this.#deadlines.filter((deadline) => deadline.at <= now).toSorted((a, b) => a.at - b.at);
    for (const deadline of due) {
      if (!this.#deadlines.includes(deadline) || deadline.at > now) continue;
      this.clear(deadline.kind);
      this.#onExpire(deadline.kind, deadline.timeoutMs);
    }
    const next = Math.min(...this.#deadlines.map((deadline) => deadline.at));
    if (next < this.#timerAt) this.#arm(next);
  }
}
