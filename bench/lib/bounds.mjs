/** From the records of a run to figures, and from those to whether the bounds hold. */

import { readFileSync } from "node:fs";
import { summary } from "./statistics.mjs";

/**
 * One visit of one subject.
 *
 * @typedef {object} Entry
 * @property {number} round
 * @property {string} subject
 * @property {string} scenario
 * @property {import("./scenarios.mjs").Figures} figures
 */

/**
 * @typedef {object} Bound
 * @property {string} id
 * @property {string} figure
 * @property {"ratio" | "difference" | "value"} kind
 * @property {string} scenario
 * @property {string} metric
 * @property {string} of
 * @property {string} [over]
 * @property {number} [times] of the divisor
 * @property {string} [unit]
 * @property {number} [max]
 * @property {number} [min]
 * @property {number} goal
 * @property {number} [quick]
 */

/** @returns {readonly Bound[]} */
export function readBounds() {
  return JSON.parse(readFileSync(new URL("../bounds.json", import.meta.url), "utf8")).bounds;
}

/** @param {readonly Entry[]} entries @returns {Map<number, number>} by round */
function byRound(entries, subject, scenario, metric) {
  const found = entries.filter((entry) => entry.subject === subject && entry.scenario === scenario);
  return new Map(found.map(({ round, figures }) => [round, figures[metric] ?? Number.NaN]));
}

/** @param {readonly Entry[]} entries */
export function valueOf(entries, subject, scenario, metric) {
  return summary([...byRound(entries, subject, scenario, metric).values()]);
}

/** Within each round, then the median: what the machine did meanwhile is the same for both. @param {readonly Entry[]} entries */
export function compare(entries, scenario, metric, of, over, combine = (a, b) => a / b) {
  const divisors = byRound(entries, over, scenario, metric);
  const pairs = [...byRound(entries, of, scenario, metric)].filter(([round]) => divisors.has(round));
  return summary(pairs.map(([round, value]) => combine(value, divisors.get(round) ?? Number.NaN)));
}

/** @param {readonly Entry[]} entries @param {Bound} bound */
export function measured(entries, { kind, scenario, metric, of, over = "", times = 1 }) {
  if (kind === "value") return valueOf(entries, of, scenario, metric);
  if (kind === "difference") return compare(entries, scenario, metric, of, over, (a, b) => a - b);
  return compare(entries, scenario, metric, of, over, (a, b) => a / (b * times));
}

/** @param {Bound} bound @param {number} value @param {boolean} quick */
export function holds({ max, min, quick: quickBound }, value, quick) {
  if (max !== undefined) return value <= (quick ? (quickBound ?? max) : max);
  return value >= (quick ? (quickBound ?? min ?? 0) : (min ?? 0));
}
