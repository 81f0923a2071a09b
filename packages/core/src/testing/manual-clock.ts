/** Virtual time for tests. */

import { setImmediate } from "node:timers/promises";
import type { Clock, Timer } from "../clock.js";

interface Entry {
  readonly at: number;
  readonly order: number;
  readonly callback: () => void;
}

/** More timers than this in one step of time is a loop that re-arms itself without moving on. */
const maxFiredPerAdvance = 100_000;

/**
 * A clock that stands still until it is told to move. It starts at 1000, so that a test which takes a time for a
 * length, or 0 for "not set", fails.
 */
export class ManualClock implements Clock {
  #now: number;
  #order = 0;
  readonly #entries = new Set<Entry>();

  /** @param start in ms, default 1000 */
  constructor(start: number = 1000) {
    this.#now = start;
  }

  now(): number {
    return this.#now;
  }

  /** A time that is over already fires at the next `advance`, also `advance(0)`, never inside this call. */
  setTimer(at: number, callback: () => void): Timer {
    const entry: Entry = { at, order: this.#order++, callback };
    this.#entries.add(entry);
    return { cancel: () => void this.#entries.delete(entry) };
  }

  /** Timers that are neither fired nor cancelled. A test ends with 0. */
  get pending(): number {
    return this.#entries.size;
  }

  /** When the next timer is due on this clock's scale, or undefined. */
  get nextAt(): number | undefined {
    return this.#earliest(Number.POSITIVE_INFINITY)?.at;
  }

  /**
   * Moves time by `ms`, from timer to timer in order of their times (equal times: in the order they were set). Before
   * the first timer, after each and at the end one turn of the event loop passes (`setImmediate`), so that every
   * pending promise callback has run, and timers that it set within the span are fired too. One turn does not wait for
   * sockets or files.
   */
  async advance(ms: number): Promise<void> {
    const target = this.#now + ms;
    await setImmediate();
    for (let fired = 0; this.#fireNext(target); fired += 1) {
      if (fired > maxFiredPerAdvance) throw new Error("ManualClock: timers re-arm themselves without end");
      await setImmediate();
    }
    this.#now = target;
    await setImmediate();
  }

  /** As `advance`, without letting promise callbacks run. For code that works with callbacks alone. */
  advanceSync(ms: number): void {
    const target = this.#now + ms;
    for (let fired = 0; this.#fireNext(target); fired += 1) {
      if (fired > maxFiredPerAdvance) throw new Error("ManualClock: timers re-arm themselves without end");
    }
    this.#now = target;
  }

  #fireNext(target: number): boolean {
    const entry = this.#earliest(target);
    if (entry === undefined) return false;
    this.#entries.delete(entry);
    this.#now = Math.max(this.#now, entry.at);
    entry.callback();
    return true;
  }

  #earliest(target: number): Entry | undefined {
    let found: Entry | undefined;
    for (const entry of this.#entries) {
      if (entry.at > target) continue;
      if (found === undefined || entry.at < found.at || (entry.at === found.at && entry.order < found.order)) {
        found = entry;
      }
    }
    return found;
  }
}
