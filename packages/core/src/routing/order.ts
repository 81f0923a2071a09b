/** The order in which the targets are tried. */

import type { Destination, RoutedTarget } from "./resolve.js";
import { behindCutoff, byLatency, type Measured } from "./latency-order.js";
import { byWeight } from "./weight.js";

/** `priority`: the lower number first, ties in list order. */
export function byPriority(targets: readonly RoutedTarget[]): RoutedTarget[] {
  return targets.toSorted((a, b) => a.target.priority - b.target.priority);
}

/** @param random in [0, 1) */
export function orderTargets(
  routing: Destination["routing"],
  targets: readonly RoutedTarget[],
  health: Measured,
  random: () => number,
): readonly RoutedTarget[] {
  if (targets.length === 1) return targets;
  switch (routing) {
    case "priority":
      return behindCutoff(byPriority(targets), health);
    case "weight":
      return byWeight(targets, random);
    case "latency":
      return byLatency(targets, health, random);
  }
}
