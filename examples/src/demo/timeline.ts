/** What happened during one request, in the order of time. */

export type Tone = "plain" | "good" | "bad" | "dim";

export interface Entry {
  /** `performance.now()`, in ms. */
  readonly at: number;
  /** Who did it: `client`, `gate`, or a provider. */
  readonly who: string;
  readonly text: string;
  readonly tone: Tone;
}

export class Timeline {
  readonly startedAt: number = performance.now();
  readonly #entries: Entry[] = [];

  add(who: string, text: string, tone: Tone = "plain", at: number = performance.now()): void {
    this.#entries.push({ at, who, text, tone });
  }

  /** Sorted; entries of one time keep the order in which they were added. */
  get entries(): readonly Entry[] {
    return this.#entries.toSorted((left, right) => left.at - right.at);
  }
}
