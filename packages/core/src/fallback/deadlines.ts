/** Several deadlines, one timer. A deadline that moves later costs nothing until the timer fires. */

import type { Clock, Timer } from "../clock.js";

interface Deadline<Kind> {
  readonly kind: Kind;
  at: number;
  timeoutMs: number;
}

export interface DeadlineListener<Kind> {
  /** @param timeoutMs what was given when it was set */
  onDeadline(kind: Kind, timeoutMs: number): void;
}

// Plain loops: every request sets and clears a handful, and a closure for each look costs more than the look.
export class Deadlines<Kind extends string> {
  readonly #clock: Clock;
  readonly #listener: DeadlineListener<Kind>;
  readonly #deadlines: Deadline<Kind>[] = [];
  #timer: Timer | undefined;
  #timerAt = Infinity;

  constructor(clock: Clock, listener: DeadlineListener<Kind>) {
    this.#clock = clock;
    this.#listener = listener;
  }

  /** Sets or moves a deadline. `timeoutMs` is what is reported when it expires. */
  set(kind: Kind, at: number, timeoutMs: number): void {
    const known = this.#deadlines[this.#find(kind)];
    if (known === undefined) this.#deadlines.push({ kind, at, timeoutMs });
    else {
      known.at = at;
      known.timeoutMs = timeoutMs;
    }
    if (at < this.#timerAt) this.#arm(at);
  }

  clear(kind: Kind): void {
    const index = this.#find(kind);
    if (index !== -1) this.#remove(index);
    if (this.#deadlines.length === 0) this.stop();
  }

  /** Clears all but these two. */
  keep(one: Kind, other: Kind): void {
    for (let index = this.#deadlines.length - 1; index >= 0; index -= 1) {
      const { kind } = this.#deadlines[index] as Deadline<Kind>;
      if (kind !== one && kind !== other) this.#remove(index);
    }
    if (this.#deadlines.length === 0) this.stop();
  }

  /** Ends all. */
  stop(): void {
    this.#deadlines.length = 0;
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerAt = Infinity;
  }

  #find(kind: Kind): number {
    for (let index = 0; index < this.#deadlines.length; index += 1)
      if ((this.#deadlines[index] as Deadline<Kind>).kind === kind) return index;
    return -1;
  }

  /** Keeps the order: of two that are due at the same time, the one that was set first decides. */
  #remove(index: number): void {
    for (let at = index + 1; at < this.#deadlines.length; at += 1)
      this.#deadlines[at - 1] = this.#deadlines[at] as Deadline<Kind>;
    this.#deadlines.pop();
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
      this.#listener.onDeadline(deadline.kind, deadline.timeoutMs);
    }
    const next = Math.min(...this.#deadlines.map((deadline) => deadline.at));
    if (next < this.#timerAt) this.#arm(next);
  }
}
