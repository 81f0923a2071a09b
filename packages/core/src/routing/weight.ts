/** `weight` routing. */

import type { RoutedTarget } from "./resolve.js";

/**
 * Draws one target after the other by its weight, without putting any back: the first by the configured shares, the rest
 * for when it fails. Targets with the weight 0 come last, in list order.
 *
 * @param random in [0, 1)
 */
export function byWeight(targets: readonly RoutedTarget[], random: () => number): RoutedTarget[] {
  const left = targets.filter(({ target }) => (target.weight ?? 0) > 0);
  let total = left.reduce((sum, { target }) => sum + (target.weight ?? 0), 0);
  const order: RoutedTarget[] = [];
  while (left.length > 0) {
    const index = draw(left, random() * total);
    const [drawn] = left.splice(index, 1) as [RoutedTarget];
    total -= drawn.target.weight ?? 0;
    order.push(drawn);
  }
  return [...order, ...targets.filter(({ target }) => (target.weight ?? 0) === 0)];
}

function draw(targets: readonly RoutedTarget[], at: number): number {
  let sum = 0;
  for (const [index, { target }] of targets.entries()) {
    sum += target.weight ?? 0;
    if (at < sum) return index;
  }
  return targets.length - 1;
}

/** A random order. https://en.wikipedia.org/wiki/Fisher–Yates_shuffle */
export function shuffled<Item>(items: readonly Item[], random: () => number): Item[] {
  const order = [...items];
  for (let last = order.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1));
    [order[last], order[other]] = [order[other] as Item, order[last] as Item];
  }
  return order;
}
