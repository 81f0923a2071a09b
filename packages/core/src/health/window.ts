/** Sums over a rolling window, in a bounded number of buckets. Asked with `now`. */

const bucketCount = 24;

interface Bucket {
  index: number;
  readonly sums: number[];
}

/** `fields` running sums. The window moves in steps of a 24th of its length. */
export class RollingWindow {
  readonly #bucketMs: number;
  readonly #fields: number;
  #buckets: Bucket[] = [];

  constructor(windowMs: number, fields: number) {
    this.#bucketMs = windowMs / bucketCount;
    this.#fields = fields;
  }

  add(now: number, values: readonly number[]): void {
    const index = Math.floor(now / this.#bucketMs);
    let bucket = this.#buckets[this.#buckets.length - 1];
    // A clock that steps back adds to the newest bucket.
    if (bucket === undefined || bucket.index < index) {
      bucket = { index, sums: Array.from({ length: this.#fields }, () => 0) };
      this.#buckets.push(bucket);
      this.#expire(index);
    }
    for (let field = 0; field < values.length; field += 1)
      bucket.sums[field] = (bucket.sums[field] ?? 0) + (values[field] ?? 0);
  }

  sums(now: number): number[] {
    this.#expire(Math.floor(now / this.#bucketMs));
    const total = Array.from({ length: this.#fields }, () => 0);
    for (const { sums } of this.#buckets) {
      for (const [field, value] of sums.entries()) total[field] = (total[field] ?? 0) + value;
    }
    return total;
  }

  clear(): void {
    this.#buckets = [];
  }

  #expire(index: number): void {
    while (this.#buckets.length > 0 && (this.#buckets[0] as Bucket).index <= index - bucketCount) this.#buckets.shift();
  }
}
