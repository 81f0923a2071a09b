/** Values of one metric label, bounded: what comes from a client or a provider can't make time series without end. */

export const otherLabel: string = "other";

export class LabelValues {
  readonly #known = new Set<string>();
  readonly #max: number;

  /** @param max distinct values that are kept; those that come later are `other` */
  constructor(max: number) {
    this.#max = max;
  }

  /** The value, which takes a place if one is free. */
  admit(value: string): string {
    if (this.#known.has(value)) return value;
    if (this.#known.size >= this.#max) return otherLabel;
    this.#known.add(value);
    return value;
  }

  /** The value if it has a place. Takes none: for values that may be anything. */
  known(value: string): string {
    return this.#known.has(value) ? value : otherLabel;
  }
}
