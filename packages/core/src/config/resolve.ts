/** `GatewayConfig` → `ResolvedConfig`: the shape first, then what the parts say of each other. Pure. */

import type { CooldownConfig, GateOptions, GatewayConfig, LimitsConfig } from "../config.js";
import {
  defaultCooldown,
  defaultFallbackStatusCodes,
  defaultHeaderPrefix,
  defaultMaxRequestBytes,
  defaultQueueTimeoutMs,
  defaultRetry,
  defaultTimeouts,
} from "./defaults.js";
import { defaultGateOptions, type ResolvedGateOptions } from "../gate/options.js";
import { inherit } from "./inherit.js";
import { listNames, Problems, quote, suggestion } from "./problems.js";
import { resolveModels, resolveRules } from "./resolve-model.js";
import { resolveProvider } from "./resolve-provider.js";
import type { DirectModels, ResolvedConfig, ResolvedCooldown, ResolvedLimits, ResolvedProvider } from "./resolved.js";
import { parseShape } from "./schema.js";
import { nameProblem, parseTargetRef } from "./target-ref.js";

type Environment = Readonly<Record<string, string | undefined>>;

const responsesSwitch = "RESPONSES_IN_BAND_ERROR_FALLBACK_ENABLED";

/**
 * Checks the configuration and applies defaults and inheritance (target over virtual model over gateway). The result is
 * frozen and independent of the given object, but for functions, `dispatcher`, `store`, `observers` and `logger`.
 *
 * @param env read for RESPONSES_IN_BAND_ERROR_FALLBACK_ENABLED only
 * @throws ConfigError at the first problem; its message lists the others
 */
export function resolveConfig(config: GatewayConfig, env: Environment): ResolvedConfig {
  const problems = new Problems();
  const parsed = parseShape(config, problems);
  problems.throwIfAny();
  if (parsed === undefined) throw new TypeError("a configuration without problems has a shape");
  const resolved = resolveParsed(parsed, env, problems);
  problems.throwIfAny();
  return resolved;
}

function resolveParsed(config: GatewayConfig, env: Environment, problems: Problems): ResolvedConfig {
  const providers = resolveProviders(config, problems);
  const builtIn = {
    timeouts: defaultTimeouts,
    retry: defaultRetry,
    fallbackStatusCodes: defaultFallbackStatusCodes,
  };
  const { timeouts, retry, fallbackStatusCodes } = config;
  const defaults = inherit({ timeouts, retry, fallbackStatusCodes }, builtIn, [], problems);
  return Object.freeze({
    providers,
    models: resolveModels(config.models ?? {}, providers, defaults, problems),
    rules: resolveRules(config.rules ?? [], providers, defaults, problems),
    directModels: resolveDirectModels(config, providers, problems),
    gate: resolveGate(config.gate ?? {}, env, problems),
    defaults,
    cooldown: config.cooldown === false ? false : resolveCooldown(config.cooldown ?? {}, problems),
    onMidStreamFailure: config.onMidStreamFailure,
    headerPrefix: resolveHeaderPrefix(config.headerPrefix, problems),
    exposeRouting: config.exposeRouting ?? true,
    limits: resolveLimits(config.limits ?? {}, problems),
    store: config.store,
    observers: Object.freeze([...(config.observers ?? [])]),
    logger: config.logger,
    dispatcher: config.dispatcher,
  });
}

function resolveProviders(config: GatewayConfig, problems: Problems): ReadonlyMap<string, ResolvedProvider> {
  const providers = new Map<string, ResolvedProvider>();
  for (const [name, provider] of Object.entries(config.providers)) {
    providers.set(name, resolveProvider(name, provider, problems));
  }
  if (providers.size === 0) problems.add(["providers"], "must not be empty: configure at least one provider");
  return providers;
}

function resolveDirectModels(
  config: GatewayConfig,
  providers: ReadonlyMap<string, ResolvedProvider>,
  problems: Problems,
): DirectModels {
  const { directModels, models } = config;
  if (models !== undefined && Object.keys(models).length === 0 && directModels === undefined) {
    problems.add(["models"], "must not be empty: leave it out, then clients name provider/model themselves");
  }
  if (directModels === undefined) return models === undefined;
  if (typeof directModels === "boolean") return directModels;
  const names = [...providers.keys()];
  const patterns = directModels.map((entry, index) => {
    const ref = parseTargetRef(entry) ?? { provider: entry, model: "*" };
    const problem = nameProblem(entry);
    if (problem !== undefined) {
      problems.add(["directModels", index], problem);
    } else if (!providers.has(ref.provider)) {
      const known = `Write a provider, "provider/model" or "provider/*"; providers are ${listNames(names, "and")}.`;
      const near = suggestion(ref.provider, names);
      problems.add(["directModels", index], `there is no provider ${quote(ref.provider)}. ${known}${near}`);
    }
    return `${ref.provider}/${ref.model}`;
  });
  return Object.freeze(patterns);
}

function resolveGate(own: GateOptions, env: Environment, problems: Problems): ResolvedGateOptions {
  return Object.freeze({
    responsesInBandErrors: own.responsesInBandErrors ?? readSwitch(env, problems),
    inBandErrors: own.inBandErrors ?? defaultGateOptions.inBandErrors,
    emptyCompletion: own.emptyCompletion ?? defaultGateOptions.emptyCompletion,
    maxLifecycleEvents: own.maxLifecycleEvents ?? defaultGateOptions.maxLifecycleEvents,
    maxHeldBytes: own.maxHeldBytes ?? defaultGateOptions.maxHeldBytes,
    maxHeldEvents: own.maxHeldEvents ?? defaultGateOptions.maxHeldEvents,
    maxHoldMs: own.maxHoldMs ?? defaultGateOptions.maxHoldMs,
    failureDetailTimeoutMs: own.failureDetailTimeoutMs ?? defaultGateOptions.failureDetailTimeoutMs,
    onOverflow: own.onOverflow ?? defaultGateOptions.onOverflow,
  });
}

/** An empty variable counts as unset, as shells and container files make them. */
function readSwitch(env: Environment, problems: Problems): boolean {
  const value = env[responsesSwitch]?.trim().toLowerCase() ?? "";
  if (value === "") return defaultGateOptions.responsesInBandErrors;
  if (value !== "true" && value !== "false") {
    const remedy = `the environment variable ${responsesSwitch} must be true or false: correct it, or set this option`;
    problems.add(["gate", "responsesInBandErrors"], remedy);
  }
  return value !== "false";
}

function resolveCooldown(own: CooldownConfig, problems: Problems): ResolvedCooldown {
  const durationMs = own.durationMs ?? defaultCooldown.durationMs;
  const maxDurationMs = own.maxDurationMs ?? Math.max(defaultCooldown.maxDurationMs, durationMs);
  if (maxDurationMs < durationMs) {
    problems.add(["cooldown", "maxDurationMs"], `must not be below durationMs (${durationMs})`);
  }
  return Object.freeze({
    failures: own.failures ?? defaultCooldown.failures,
    failureRatio: own.failureRatio ?? defaultCooldown.failureRatio,
    windowMs: own.windowMs ?? defaultCooldown.windowMs,
    durationMs,
    maxDurationMs,
  });
}

function resolveHeaderPrefix(prefix: string | undefined, problems: Problems): string {
  if (prefix === undefined) return defaultHeaderPrefix;
  if (!/^[a-z0-9][a-z0-9_-]*-$/i.test(prefix)) {
    problems.add(["headerPrefix"], "must be letters, digits and hyphens that end in a hyphen, such as x-gateway-");
  }
  return prefix.toLowerCase();
}

function resolveLimits(own: LimitsConfig, problems: Problems): ResolvedLimits {
  for (const key of ["maxQueue", "queueTimeoutMs"] as const) {
    if (own[key] !== undefined && own.maxConcurrent === undefined) {
      problems.add(["limits", key], "has an effect with `maxConcurrent` only: set that too, or leave it out");
    }
  }
  return Object.freeze({
    maxRequestBytes: own.maxRequestBytes ?? defaultMaxRequestBytes,
    maxConcurrent: own.maxConcurrent,
    maxQueue: own.maxQueue ?? 0,
    queueTimeoutMs: own.queueTimeoutMs ?? defaultQueueTimeoutMs,
  });
}
