/** The order in which the targets of a virtual model are tried. */

import type { ResolvedTarget } from "../config/resolved.js";

/** `priority`: the lower number first, ties in list order. */
export function byPriority(targets: readonly ResolvedTarget[]): readonly ResolvedTarget[] {
  return targets.toSorted((a, b) => a.priority - b.priority);
}
