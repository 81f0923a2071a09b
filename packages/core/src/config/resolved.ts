/** The configuration as the other parts read it: complete, frozen, with inheritance applied. */

import type { Dispatcher, HealthStore, Logger } from "../config.js";
import type { ResolvedGateOptions } from "../gate/options.js";
import type { ProtocolName } from "../gate/protocols/protocol.js";
import type { Observer } from "../observability/observer.js";
import type { Routing } from "./model-config.js";
import type { ApiKey, ProviderType, SignRequest } from "./provider-config.js";
import type { StatusCode } from "./status-code.js";

export interface ResolvedConfig {
  readonly providers: ReadonlyMap<string, ResolvedProvider>;
  /** Exact names first, then patterns, the longest first: the first that matches is the one. */
  readonly models: readonly ResolvedModel[];
  readonly rules: readonly ResolvedRule[];
  readonly directModels: DirectModels;
  readonly gate: ResolvedGateOptions;
  /** Those of the gateway, which targets inherit. */
  readonly defaults: TargetDefaults;
  readonly cooldown: ResolvedCooldown | false;
  /** Undefined: as the protocol says. */
  readonly onMidStreamFailure: "event" | "abort" | undefined;
  /** Lower case. */
  readonly headerPrefix: string;
  readonly exposeRouting: boolean;
  readonly limits: ResolvedLimits;
  readonly store: HealthStore | undefined;
  readonly observers: readonly Observer[];
  readonly logger: Logger | undefined;
  readonly dispatcher: Dispatcher | undefined;
}

/** `true`: every model of every provider. Else `provider/model` names; `provider/*` allows a whole provider. */
export type DirectModels = boolean | readonly string[];

export interface ResolvedProvider {
  readonly name: string;
  readonly type: ProviderType;
  /** Scheme, host and port. */
  readonly origin: string;
  /** Begins with a slash and does not end in one, or is empty. */
  readonly basePath: string;
  readonly protocols: ReadonlySet<ProtocolName>;
  readonly apiKey: ApiKey | undefined;
  readonly forwardClientCredentials: boolean;
  /** Lower-case names. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Lower-case names. */
  readonly forwardHeaders: ReadonlySet<string>;
  readonly requireTerminal: boolean;
  readonly apiVersion: string | undefined;
  readonly region: string | undefined;
  readonly sign: SignRequest | undefined;
}

/** What a target inherits. */
export interface TargetDefaults {
  readonly timeouts: ResolvedTimeouts;
  readonly retry: ResolvedRetry;
  readonly fallbackStatusCodes: readonly StatusCode[];
}

export interface ResolvedTarget extends TargetDefaults {
  /** `provider/model`, as configured. */
  readonly id: string;
  readonly provider: ResolvedProvider;
  /** `*`: keep the requested name. */
  readonly model: string;
  readonly priority: number;
  /** Set exactly where the routing is `weight`. */
  readonly weight: number | undefined;
  readonly fallbackCandidate: boolean;
  /** Undefined: nothing to replace. The values are frozen JSON. */
  readonly overrideParams: Readonly<Record<string, unknown>> | undefined;
  readonly dropParams: readonly string[];
  readonly headersOverride: ResolvedHeadersOverride | undefined;
  readonly metadataMatch: readonly (readonly [key: string, value: string])[];
  readonly slaCutoff: ResolvedSlaCutoff | undefined;
}

export interface ResolvedHeadersOverride {
  /** Lower-case names. */
  readonly set: readonly (readonly [name: string, value: string])[];
  /** Lower-case names. */
  readonly remove: ReadonlySet<string>;
}

export interface ResolvedSlaCutoff {
  readonly timePerOutputTokenMs: number | undefined;
  readonly timeToFirstTokenMs: number | undefined;
}

export interface ResolvedModel {
  /** As configured, with the `*` of a pattern. */
  readonly name: string;
  readonly pattern: boolean;
  readonly routing: Routing;
  readonly targets: readonly ResolvedTarget[];
  readonly sticky: ResolvedSticky | undefined;
}

export interface ResolvedSticky {
  readonly ttlSeconds: number;
  /** Header names are lower case. */
  readonly sessionIdentifiers: readonly { readonly source: "headers" | "metadata" | "body"; readonly key: string }[];
}

export interface ResolvedRule {
  readonly id: string;
  readonly when: {
    /** Undefined: any. */
    readonly subjects: ReadonlySet<string> | undefined;
    /** Names and patterns. Undefined: any. */
    readonly models: readonly string[] | undefined;
    readonly metadata: readonly (readonly [key: string, value: string])[];
  };
  readonly routing: Routing;
  readonly targets: readonly ResolvedTarget[];
}

export interface ResolvedTimeouts {
  /** Undefined: off. */
  readonly ttftTimeoutMs: number | undefined;
  readonly requestTimeoutMs: number;
  /** Set by configuration: it runs to the end of the attempt. Else it ends at the release of a streaming request. */
  readonly requestTimeoutIsSet: boolean;
  readonly idleTimeoutMs: number;
  /** Set by configuration: it runs for non-streaming requests too. */
  readonly idleTimeoutIsSet: boolean;
  readonly connectTimeoutMs: number;
  /** Undefined: off. */
  readonly totalTimeoutMs: number | undefined;
  readonly writeStallTimeoutMs: number;
  readonly lastTargetTtft: "enforce" | "exempt";
  readonly minAttemptMs: number;
}

export interface ResolvedRetry {
  /** Undefined: 0 while another target remains, 2 on the last one. */
  readonly attempts: number | undefined;
  readonly delayMs: number;
  readonly maxDelayMs: number;
  readonly onStatusCodes: readonly StatusCode[];
}

export interface ResolvedCooldown {
  readonly failures: number;
  readonly failureRatio: number;
  readonly windowMs: number;
  readonly durationMs: number;
  readonly maxDurationMs: number;
}

export interface ResolvedLimits {
  readonly maxRequestBytes: number;
  /** Undefined: no limit. */
  readonly maxConcurrent: number | undefined;
  readonly maxQueue: number;
  readonly queueTimeoutMs: number;
}
