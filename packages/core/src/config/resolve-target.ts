/** Targets: what they refer to, what they change in a request, and what they inherit. */

import type { Routing, TargetConfig } from "./model-config.js";
import { headerNameProblem } from "./header-rules.js";
import { inherit } from "./inherit.js";
import { frozenJson } from "./frozen-json.js";
import { listNames, quote, suggestion, type Path, type Problems } from "./problems.js";
import { resolveHeaders } from "./resolve-provider.js";
import type {
  ResolvedConfig,
  ResolvedHeadersOverride,
  ResolvedProvider,
  ResolvedSlaCutoff,
  ResolvedTarget,
  TargetDefaults,
} from "./resolved.js";
import { nameProblem, parseTargetRef, type TargetRef } from "./target-ref.js";

/** What the targets of one list share. */
export interface TargetContext {
  readonly providers: ReadonlyMap<string, ResolvedProvider>;
  readonly defaults: TargetDefaults;
  readonly routing: Routing;
  /** Whether `provider/*` makes sense: the requested name may be a model of the provider. */
  readonly keepsNames: boolean;
}

/** The targets that could be resolved; problems are added for the others. */
export function resolveTargets(
  configs: readonly TargetConfig[],
  context: TargetContext,
  path: Path,
  problems: Problems,
): readonly ResolvedTarget[] {
  const targets: ResolvedTarget[] = [];
  for (const [index, config] of configs.entries()) {
    const target = resolveTarget(config, context, [...path, index], problems);
    if (target !== undefined) targets.push(target);
  }
  if (context.routing === "weight" && configs.every((config) => config.weight !== undefined)) {
    const sum = configs.reduce((total, config) => total + (config.weight ?? 0), 0);
    if (sum !== 100) problems.add(path, `the weights sum to ${sum}: they must sum to 100`);
  }
  return Object.freeze(targets);
}

function resolveTarget(
  config: TargetConfig,
  context: TargetContext,
  path: Path,
  problems: Problems,
): ResolvedTarget | undefined {
  checkRouting(config, context.routing, path, problems);
  const inherited = inherit(config, context.defaults, path, problems);
  const changes = {
    overrideParams: resolveOverrideParams(config.overrideParams, [...path, "overrideParams"], problems),
    dropParams: resolveDropParams(config.dropParams ?? [], [...path, "dropParams"], problems),
    headersOverride: resolveHeadersOverride(config.headersOverride, [...path, "headersOverride"], problems),
  };
  const ref = resolveRef(config.target, context, [...path, "target"], problems);
  const provider = ref === undefined ? undefined : context.providers.get(ref.provider);
  if (ref === undefined || provider === undefined) return undefined;
  return Object.freeze({
    ...plainTarget(provider, ref.model, inherited),
    ...changes,
    priority: config.priority ?? 0,
    weight: context.routing === "weight" ? config.weight : undefined,
    fallbackCandidate: config.fallbackCandidate ?? true,
    metadataMatch: entries(config.metadataMatch),
    slaCutoff: resolveSlaCutoff(config.slaCutoff, [...path, "slaCutoff"], problems),
  });
}

/** A target that clients name themselves: the gateway's settings and no changes to the request. */
export function targetFor(config: ResolvedConfig, provider: ResolvedProvider, model: string): ResolvedTarget {
  return plainTarget(provider, model, config.defaults);
}

function plainTarget(provider: ResolvedProvider, model: string, inherited: TargetDefaults): ResolvedTarget {
  return Object.freeze({
    id: `${provider.name}/${model}`,
    provider,
    model,
    priority: 0,
    weight: undefined,
    fallbackCandidate: true,
    overrideParams: undefined,
    dropParams: [],
    headersOverride: undefined,
    metadataMatch: [],
    slaCutoff: undefined,
    ...inherited,
  });
}

function resolveRef(text: string, context: TargetContext, path: Path, problems: Problems): TargetRef | undefined {
  const ref = parseTargetRef(text);
  const names = [...context.providers.keys()];
  if (ref === undefined) {
    problems.add(path, `must be "provider/model", not ${quote(text)}. Providers are ${listNames(names, "and")}`);
  } else if (!context.providers.has(ref.provider)) {
    const near = suggestion(ref.provider, names);
    problems.add(path, `there is no provider ${quote(ref.provider)}. Providers are ${listNames(names, "and")}.${near}`);
  } else if (ref.model === "*") {
    if (context.keepsNames) return ref;
    problems.add(path, "`*` keeps the requested name, so it needs a name that ends in `*`: name the model here");
  } else if (ref.model.includes("*")) {
    problems.add(path, `\`*\` stands alone in a target: write ${quote(`${ref.provider}/*`)} or the whole model`);
  } else {
    const problem = nameProblem(ref.model);
    if (problem === undefined) return ref;
    problems.add(path, `the model ${problem}`);
  }
  return undefined;
}

function checkRouting(config: TargetConfig, routing: Routing, path: Path, problems: Problems): void {
  if (routing === "weight" && config.weight === undefined) {
    problems.add([...path, "weight"], 'is missing: with routing "weight" every target has one, and they sum to 100');
  }
  if (routing !== "weight" && config.weight !== undefined) {
    problems.add([...path, "weight"], 'has an effect with routing "weight" only: set that, or leave the weight out');
  }
  if (routing !== "priority" && config.slaCutoff !== undefined) {
    problems.add([...path, "slaCutoff"], 'has an effect with routing "priority" only: set that, or leave it out');
  }
}

/** What decides where a request goes and how it is read: not a target's to change. */
const ownedParams: ReadonlyMap<string, string> = new Map([
  ["model", "is part of `target`: name the model there"],
  ["stream", "is the client's choice, which decides how the answer is read: leave it out"],
]);

function resolveOverrideParams(
  params: Readonly<Record<string, unknown>> | undefined,
  path: Path,
  problems: Problems,
): Readonly<Record<string, unknown>> | undefined {
  if (params === undefined || Object.keys(params).length === 0) return undefined;
  for (const key of Object.keys(params)) {
    const owned = ownedParams.get(key);
    if (owned !== undefined) problems.add([...path, key], owned);
  }
  return frozenJson(params, path, problems) as Readonly<Record<string, unknown>>;
}

function resolveDropParams(names: readonly string[], path: Path, problems: Problems): readonly string[] {
  for (const [index, name] of names.entries()) {
    const owned = ownedParams.get(name);
    if (owned !== undefined) problems.add([...path, index], `${quote(name)} ${owned}`);
  }
  return Object.freeze([...names]);
}

function resolveHeadersOverride(
  config: TargetConfig["headersOverride"],
  path: Path,
  problems: Problems,
): ResolvedHeadersOverride | undefined {
  if (config === undefined) return undefined;
  const set = resolveHeaders(config.set ?? {}, [...path, "set"], problems);
  for (const [index, name] of (config.remove ?? []).entries()) {
    const problem = headerNameProblem(name);
    if (problem !== undefined) problems.add([...path, "remove", index], problem);
  }
  return Object.freeze({ set, remove: new Set((config.remove ?? []).map((name) => name.toLowerCase())) });
}

function resolveSlaCutoff(
  config: TargetConfig["slaCutoff"],
  path: Path,
  problems: Problems,
): ResolvedSlaCutoff | undefined {
  if (config === undefined) return undefined;
  const { timePerOutputTokenMs, timeToFirstTokenMs } = config;
  if (timePerOutputTokenMs === undefined && timeToFirstTokenMs === undefined) {
    problems.add(path, "needs `timePerOutputTokenMs`, `timeToFirstTokenMs` or both");
  }
  return Object.freeze({ timePerOutputTokenMs, timeToFirstTokenMs });
}

/** As frozen pairs, which need no care about prototypes. */
export function entries(
  values: Readonly<Record<string, string>> | undefined,
): readonly (readonly [key: string, value: string])[] {
  return Object.freeze(Object.entries(values ?? {}).map((entry) => Object.freeze(entry)));
}
