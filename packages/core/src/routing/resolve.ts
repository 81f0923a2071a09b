/** Requested model → the targets that may serve it, not in order yet. */

import { directTarget } from "../config/direct-target.js";
import type { Routing } from "../config/model-config.js";
import type { ResolvedConfig, ResolvedModel, ResolvedSticky, ResolvedTarget } from "../config/resolved.js";
import { matchesName, parseTargetRef } from "../config/target-ref.js";
import { matchRule, type RuleFacts } from "./rules.js";

/** A target with the name of its model filled in. */
export interface RoutedTarget {
  readonly target: ResolvedTarget;
  /** What the target is asked for: its own model, or the requested name where its model is `*`. */
  readonly model: string;
  /** `provider/model`, for headers and records. */
  readonly id: string;
}

/** Where a request for one model may go. */
export interface Destination {
  /** The virtual model as configured, or `provider/model`; `unknown` where only a rule knows it. For records. */
  readonly name: string;
  /** The rule that decided. */
  readonly rule: string | undefined;
  readonly routing: Routing;
  readonly targets: readonly RoutedTarget[];
  readonly sticky: ResolvedSticky | undefined;
}

/** Rules first, then virtual models, then `provider/model`. Undefined: there is no such model for this client. */
export function findDestination(config: ResolvedConfig, facts: RuleFacts): Destination | undefined {
  const { requested } = facts;
  let model: ResolvedModel | undefined;
  for (const candidate of config.models) {
    if (!matchesName(candidate.name, requested)) continue;
    model = candidate;
    break;
  }
  const rule = matchRule(config.rules, facts);
  if (rule !== undefined) {
    return {
      name: model?.name ?? "unknown",
      rule: rule.id,
      routing: rule.routing,
      targets: rule.targets.map((target) => routed(target, requested)),
      sticky: undefined,
    };
  }
  if (model !== undefined) return destinationOf(model, requested);
  const ref = parseTargetRef(requested);
  const target = ref === undefined ? undefined : directTarget(config, ref.provider, ref.model);
  if (target === undefined) return undefined;
  return {
    name: requested,
    rule: undefined,
    routing: "priority",
    targets: [routed(target, requested)],
    sticky: undefined,
  };
}

/** By the name that was asked for. Clients choose the names that a pattern matches: the map begins anew when it is full. */
const destinations = new WeakMap<ResolvedModel, Map<string, Destination>>();
const maxNames = 256;

function destinationOf(model: ResolvedModel, requested: string): Destination {
  let known = destinations.get(model);
  if (known === undefined) destinations.set(model, (known = new Map()));
  let destination = known.get(requested);
  if (destination === undefined) {
    const { name, routing, sticky } = model;
    const targets = model.targets.map((target) => routed(target, requested));
    destination = { name, rule: undefined, routing, targets, sticky };
    if (known.size >= maxNames) known.clear();
    known.set(requested, destination);
  }
  return destination;
}

export function routed(target: ResolvedTarget, requested: string): RoutedTarget {
  const model = target.model === "*" ? requested : target.model;
  return { target, model, id: `${target.provider.name}/${model}` };
}
