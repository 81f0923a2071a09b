/**
 * `latency` routing, and `slaCutoff` of `priority` routing: orders by what was measured.
 *
 * A target with fewer than 3 requests in the window goes first, so that it gets measured. Requests count when they begin:
 * else all that come while the first are under way would follow them to a target that may be slow.
 */

import { minSamples, type LatencyMeans } from "../health/latency.js";
import type { RoutedTarget } from "./resolve.js";
import { shuffled } from "./weight.js";

/** Targets within this factor of the fastest are as good as it. */
const equalFactor = 1.2;

/** What is known of the targets, by `provider/model`. `Health` is one. */
export interface Measured {
  begun(target: string): number;
  latency(target: string): LatencyMeans;
  recentLatency(target: string): LatencyMeans;
}

/** @param random in [0, 1) */
export function byLatency(targets: readonly RoutedTarget[], health: Measured, random: () => number): RoutedTarget[] {
  const fresh: RoutedTarget[] = [];
  const measured: { readonly target: RoutedTarget; readonly timeMs: number }[] = [];
  const unknown: RoutedTarget[] = [];
  for (const target of targets) {
    const timeMs = health.latency(target.id).timePerOutputTokenMs;
    if (health.begun(target.id) < minSamples) fresh.push(target);
    else if (timeMs === undefined) unknown.push(target);
    else measured.push({ target, timeMs });
  }
  const limit = equalFactor * Math.min(...measured.map(({ timeMs }) => timeMs));
  const equal = measured.filter(({ timeMs }) => timeMs <= limit);
  const slower = measured.filter(({ timeMs }) => timeMs > limit).toSorted((a, b) => a.timeMs - b.timeMs);
  const known = [...shuffled(equal, random), ...slower].map(({ target }) => target);
  // Began and never ended with a measure: all failed, or all are under way.
  return [...shuffled(fresh, random), ...known, ...shuffled(unknown, random)];
}

/** The order without those above their `slaCutoff`, then those. */
export function behindCutoff(targets: readonly RoutedTarget[], health: Measured): RoutedTarget[] {
  const slow = new Set(targets.filter((target) => isAboveCutoff(target, health)));
  return slow.size === 0 ? [...targets] : [...targets.filter((target) => !slow.has(target)), ...slow];
}

function isAboveCutoff({ id, target }: RoutedTarget, health: Measured): boolean {
  const { slaCutoff } = target;
  if (slaCutoff === undefined) return false;
  const { samples, ttftMs, timePerOutputTokenMs } = health.recentLatency(id);
  if (samples < minSamples) return false;
  return (
    (ttftMs ?? 0) > (slaCutoff.timeToFirstTokenMs ?? Infinity) ||
    (timePerOutputTokenMs ?? 0) > (slaCutoff.timePerOutputTokenMs ?? Infinity)
  );
}
