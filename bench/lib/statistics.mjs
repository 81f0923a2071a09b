/** Order statistics, and random numbers that can be had again. */

/** @param {readonly number[]} values @param {number} part in [0, 1] */
export function quantile(values, part) {
  const sorted = values.toSorted((a, b) => a - b);
  if (sorted.length === 0) return Number.NaN;
  const at = (sorted.length - 1) * part;
  const low = sorted[Math.floor(at)] ?? Number.NaN;
  const high = sorted[Math.ceil(at)] ?? Number.NaN;
  return low + (high - low) * (at - Math.floor(at));
}

/** @param {readonly number[]} values */
export function median(values) {
  return quantile(values, 0.5);
}

/** @typedef {{ median: number, low: number, high: number, count: number }} Summary */

/** The median, and the least and the greatest of the rounds. @param {readonly number[]} values @returns {Summary | undefined} */
export function summary(values) {
  const known = values.filter((value) => Number.isFinite(value));
  if (known.length === 0) return undefined;
  return { median: median(known), low: Math.min(...known), high: Math.max(...known), count: known.length };
}

/** mulberry32. @param {number} seed @returns {() => number} in [0, 1) */
export function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** @template T @param {readonly T[]} values @param {() => number} random @returns {T[]} */
export function shuffled(values, random) {
  const out = [...values];
  for (let index = out.length - 1; index > 0; index -= 1) {
    const other = Math.floor(random() * (index + 1));
    [out[index], out[other]] = [out[other], out[index]];
  }
  return out;
}
