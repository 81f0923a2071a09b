/** Virtual models and rules. */

import type { GatewayConfig, RoutingRule, StickyConfig, VirtualModelConfig } from "../config.js";
import { headerNameProblem } from "./header-rules.js";
import { inherit } from "./inherit.js";
import { quote, type Path, type Problems } from "./problems.js";
import { entries, resolveTargets } from "./resolve-target.js";
import type { ResolvedModel, ResolvedProvider, ResolvedRule, ResolvedSticky, TargetDefaults } from "./resolved.js";
import { isPattern, nameProblem } from "./target-ref.js";

type Providers = ReadonlyMap<string, ResolvedProvider>;

/** Exact names first, then patterns, the longest first. */
export function resolveModels(
  models: NonNullable<GatewayConfig["models"]>,
  providers: Providers,
  defaults: TargetDefaults,
  problems: Problems,
): readonly ResolvedModel[] {
  const resolved = Object.entries(models).map(([name, config]) =>
    resolveModel(name, config, providers, defaults, problems),
  );
  const exact = resolved.filter((model) => !model.pattern);
  const patterns = resolved.filter((model) => model.pattern).toSorted((a, b) => b.name.length - a.name.length);
  return Object.freeze([...exact, ...patterns]);
}

function resolveModel(
  name: string,
  config: VirtualModelConfig,
  providers: Providers,
  gateway: TargetDefaults,
  problems: Problems,
): ResolvedModel {
  const path: Path = ["models", name];
  const problem = nameProblem(name);
  if (problem !== undefined) problems.add(path, `the name of a virtual model ${problem}`);
  const pattern = isPattern(name);
  const routing = config.routing ?? "priority";
  const defaults = inherit(config, gateway, path, problems);
  const context = { providers, defaults, routing, keepsNames: pattern };
  if (config.sticky !== undefined && routing !== "weight") {
    problems.add([...path, "sticky"], 'has an effect with routing "weight" only: set that, or leave it out');
  }
  return Object.freeze({
    name,
    pattern,
    routing,
    targets: resolveTargets(config.targets, context, [...path, "targets"], problems),
    sticky: resolveSticky(config.sticky, [...path, "sticky"], problems),
  });
}

function resolveSticky(config: StickyConfig | undefined, path: Path, problems: Problems): ResolvedSticky | undefined {
  if (config === undefined) return undefined;
  const sessionIdentifiers = config.sessionIdentifiers.map(({ source, key }, index) => {
    const problem = source === "headers" ? headerNameProblem(key) : undefined;
    if (problem !== undefined) problems.add([...path, "sessionIdentifiers", index, "key"], problem);
    return Object.freeze({ source, key: source === "headers" ? key.toLowerCase() : key });
  });
  return Object.freeze({ ttlSeconds: config.ttlSeconds, sessionIdentifiers: Object.freeze(sessionIdentifiers) });
}

export function resolveRules(
  rules: readonly RoutingRule[],
  providers: Providers,
  defaults: TargetDefaults,
  problems: Problems,
): readonly ResolvedRule[] {
  const ids = new Set<string>();
  const resolved = rules.map((rule, index) => {
    const path: Path = ["rules", index];
    if (ids.has(rule.id)) problems.add([...path, "id"], `${quote(rule.id)} is taken: every rule has an id of its own`);
    ids.add(rule.id);
    return resolveRule(rule, providers, defaults, path, problems);
  });
  return Object.freeze(resolved);
}

function resolveRule(
  rule: RoutingRule,
  providers: Providers,
  defaults: TargetDefaults,
  path: Path,
  problems: Problems,
): ResolvedRule {
  const { subjects, models, metadata } = rule.when;
  for (const [index, name] of (models ?? []).entries()) {
    const problem = nameProblem(name);
    if (problem !== undefined) problems.add([...path, "when", "models", index], problem);
  }
  const routing = rule.routing ?? "priority";
  // With exact names alone, `provider/*` would send the provider a name that only this gateway knows.
  const keepsNames = models === undefined || models.some(isPattern);
  return Object.freeze({
    id: rule.id,
    when: Object.freeze({
      subjects: subjects === undefined ? undefined : new Set(subjects),
      models: models === undefined ? undefined : Object.freeze([...models]),
      metadata: entries(metadata),
    }),
    routing,
    targets: resolveTargets(rule.targets, { providers, defaults, routing, keepsNames }, [...path, "targets"], problems),
  });
}
