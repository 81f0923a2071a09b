/**
 * The configuration as users write it. `resolveConfig` (config/resolve.ts) checks it, applies defaults and inheritance
 * once, and throws a `ConfigError` that names the path and the remedy.
 *
 * Unknown keys are errors. A key that is present with the value `undefined` counts as absent, but for `apiKey`.
 * Unless a comment says otherwise, numbers are whole and lengths of time are in ms, from 1 to 2 147 483 647.
 */

import type { RetryConfig, RoutingRule, Timeouts, VirtualModelConfig } from "./config/model-config.js";
import type { ProviderConfig } from "./config/provider-config.js";
import type { StatusCode } from "./config/status-code.js";
import type { HealthStore } from "./health/store.js";
import type { Observer } from "./observability/observer.js";

export type {
  HeadersOverride,
  RetryConfig,
  Routing,
  RoutingRule,
  RuleCondition,
  SessionIdentifier,
  SlaCutoff,
  StickyConfig,
  TargetConfig,
  Timeouts,
  VirtualModelConfig,
} from "./config/model-config.js";
export type {
  ApiKey,
  ProviderConfig,
  ProviderType,
  RequestContext,
  SignableRequest,
  SignRequest,
} from "./config/provider-config.js";
export type { StatusCode } from "./config/status-code.js";
export type { HealthStore, Rest } from "./health/store.js";

export interface GatewayConfig {
  /** At least one. Names are visible ASCII without `/` and `*`; clients may see them in `provider/model`. */
  readonly providers: Readonly<Record<string, ProviderConfig>>;
  /**
   * Names that clients ask for. A name that ends in `*` is a pattern; exact names win over patterns, longer patterns
   * over shorter ones. Default: none, then clients name `provider/model`.
   */
  readonly models?: Readonly<Record<string, VirtualModelConfig>> | undefined;
  /**
   * Whether clients may name `provider/model` themselves. A list allows those providers (`openai`) or models
   * (`openai/gpt-5.1`, `openai/gpt-*`) only. Default: true without `models`, else false.
   */
  readonly directModels?: boolean | readonly string[] | undefined;
  /** Targets by caller, model or metadata. The first match wins over `models`. Default: none. */
  readonly rules?: readonly RoutingRule[] | undefined;
  readonly gate?: GateOptions | undefined;
  /** Defaults for every target. */
  readonly timeouts?: Timeouts | undefined;
  /** Defaults for every target. */
  readonly retry?: RetryConfig | undefined;
  /**
   * Failures that move on to the next target, for every target that sets none. Network errors and TTFT timeouts always
   * do. Default: 401, 402, 403, 404, 408, 424, 429, "5xx".
   */
  readonly fallbackStatusCodes?: readonly StatusCode[] | undefined;
  /** How failing targets rest. `false` switches cooldown off. */
  readonly cooldown?: false | CooldownConfig | undefined;
  /**
   * How a stream that broke after release is told to the client: one error event and then a destroyed connection, or
   * the destroyed connection alone. Default: `abort` for Anthropic Messages, `event` for the others.
   */
  readonly onMidStreamFailure?: "event" | "abort" | undefined;
  /** Prefix of our headers. Ends in `-`; matched without regard to case. Default: `x-tfy-`. */
  readonly headerPrefix?: string | undefined;
  /** Whether clients see which target answered and the trail of attempts. Default: true. */
  readonly exposeRouting?: boolean | undefined;
  readonly limits?: LimitsConfig | undefined;
  /** Where cooldowns and response ids are kept, for several processes to share. Default: in memory, per gateway. */
  readonly store?: HealthStore | undefined;
  /** Metrics, tracing and your own. Default: none. */
  readonly observers?: readonly Observer[] | undefined;
  /** Default: no log. */
  readonly logger?: Logger | undefined;
  /** An undici dispatcher for all providers (proxies, tests). Never closed by the gateway. Default: pools of its own. */
  readonly dispatcher?: Dispatcher | undefined;
}

/** How the opening of a stream is judged. */
export interface GateOptions {
  /** Validation of native Responses streams. Default: env RESPONSES_IN_BAND_ERROR_FALLBACK_ENABLED, else true. */
  readonly responsesInBandErrors?: boolean | undefined;
  /** Validation of all others. False still leaves Anthropic streams held to their first event. Default: true. */
  readonly inBandErrors?: boolean | undefined;
  /** What an answer without output is. `auto` falls back while a target remains, else releases. Default: `auto`. */
  readonly emptyCompletion?: "auto" | "release" | "fallback" | "fail" | undefined;
  /** Lifecycle events held; one more releases. 0 or more. Default: 4. */
  readonly maxLifecycleEvents?: number | undefined;
  /** Bytes held for one stream, at least 65 536. Default: 4 194 304. */
  readonly maxHeldBytes?: number | undefined;
  /** Events held for one stream. Default: 256. */
  readonly maxHeldEvents?: number | undefined;
  /** From the first upstream event, in ms; 0 = no limit. Not applied under a TTFT timeout. Default: 50 000. */
  readonly maxHoldMs?: number | undefined;
  /** How long the reason of a failure without one is awaited. Default: 1 000. */
  readonly failureDetailTimeoutMs?: number | undefined;
  /** What happens at `maxHeldBytes` and `maxHeldEvents`: release, or fail with a 502. Default: `release`. */
  readonly onOverflow?: "release" | "fail" | undefined;
}

/** A target rests after at least `failures` failures that are also `failureRatio` of its attempts in the window. */
export interface CooldownConfig {
  /** Default: 2. */
  readonly failures?: number | undefined;
  /** Above 0, up to 1. Default: 0.1. */
  readonly failureRatio?: number | undefined;
  /** Default: 120 000 ms. */
  readonly windowMs?: number | undefined;
  /** Length of the first rest; doubled with each in a row. Default: 30 000 ms. */
  readonly durationMs?: number | undefined;
  /** Longest rest, not below `durationMs`. Default: 300 000 ms, or `durationMs` if that is longer. */
  readonly maxDurationMs?: number | undefined;
}

export interface LimitsConfig {
  /** Request bodies above this are answered with 413, in bytes. Default: 33 554 432. */
  readonly maxRequestBytes?: number | undefined;
  /** Requests served at once. Default: no limit. */
  readonly maxConcurrent?: number | undefined;
  /** Requests that wait for a place; with `maxConcurrent` only. 0 or more. Default: 0. */
  readonly maxQueue?: number | undefined;
  /** How long one waits; with `maxConcurrent` only. Default: 10 000 ms. */
  readonly queueTimeoutMs?: number | undefined;
}

/** Shaped like pino: facts first, then the message. */
export interface Logger {
  debug(facts: object, message: string): void;
  info(facts: object, message: string): void;
  warn(facts: object, message: string): void;
  error(facts: object, message: string): void;
}

/** An undici dispatcher. Told by its method, so that one of another copy or version of undici is taken too. */
export interface Dispatcher {
  dispatch(options: never, handler: never): boolean;
}
