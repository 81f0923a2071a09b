/** Requested model → ordered targets. */

import { directTarget } from "../config/direct-target.js";
import type { ResolvedConfig, ResolvedTarget, ResolvedTimeouts } from "../config/resolved.js";
import { matchesName, parseTargetRef } from "../config/target-ref.js";
import type { Failure } from "../errors.js";
import type { ProtocolName } from "../gate/protocols/protocol.js";
import { apiNotServed, modelNotFound } from "../request-failures.js";
import { byPriority } from "./order.js";

/** A target with the name of its model filled in. */
export interface RoutedTarget {
  readonly target: ResolvedTarget;
  /** What the target is asked for: its own model, or the requested name where its model is `*`. */
  readonly model: string;
  /** `provider/model`, for headers and records. */
  readonly id: string;
}

export interface Resolution {
  /** The virtual model as configured, or `provider/model`: a bounded set of names, for records. */
  readonly name: string;
  /** In the order to be tried; at least one. */
  readonly targets: readonly RoutedTarget[];
  /** For what no target decides. */
  readonly timeouts: ResolvedTimeouts;
}

/**
 * @param requested the model that the client named
 * @param route for the message, e.g. `POST /v1/messages`
 * @returns the targets, or a 404 (unknown model) or 400 (no target serves the API)
 */
export function resolveModel(config: ResolvedConfig, requested: string, protocol: ProtocolName, route: string): Resolution | Failure {
  const model = config.models.find((candidate) => matchesName(candidate.name, requested));
  if (model !== undefined) {
    const serving = model.targets.filter((target) => target.provider.protocols.has(protocol));
    if (serving.length === 0) return apiNotServed(requested, route);
    return { name: model.name, targets: byPriority(serving).map((target) => routed(target, requested)), timeouts: model.timeouts };
  }
  const ref = parseTargetRef(requested);
  const target = ref === undefined ? undefined : directTarget(config, ref.provider, ref.model);
  if (target === undefined) return modelNotFound(requested);
  if (!target.provider.protocols.has(protocol)) return apiNotServed(requested, route);
  return { name: requested, targets: [routed(target, requested)], timeouts: config.defaults.timeouts };
}

function routed(target: ResolvedTarget, requested: string): RoutedTarget {
  const model = target.model === "*" ? requested : target.model;
  return { target, model, id: `${target.provider.name}/${model}` };
}
