/** Virtual models, targets and rules as users write them. Exported through config.ts. */

import type { StatusCode } from "./status-code.js";

/** How the order of targets is found. */
export type Routing = "priority" | "weight" | "latency";

export interface VirtualModelConfig extends Timeouts {
  /** Default: `priority`. */
  readonly routing?: Routing | undefined;
  /** At least one. The same target may be listed twice. */
  readonly targets: readonly TargetConfig[];
  /** `weight` routing only: keeps a session at one target. Default: none. */
  readonly sticky?: StickyConfig | undefined;
  /** Default: that of the gateway, key by key. */
  readonly retry?: RetryConfig | undefined;
  /** Default: that of the gateway. */
  readonly fallbackStatusCodes?: readonly StatusCode[] | undefined;
  /** Default: those of the gateway, key by key. Each may be written on the model itself instead. */
  readonly timeouts?: Timeouts | undefined;
}

export interface TargetConfig extends Timeouts {
  /** `provider/model`, split at the first slash. `provider/*` keeps the requested name, below a pattern only. */
  readonly target: string;
  /** `weight` routing only, and required there: percent, 0 to 100. All weights of a model sum to 100. */
  readonly weight?: number | undefined;
  /** Lower goes first, ties in list order. 0 or more. Default: 0. */
  readonly priority?: number | undefined;
  /** Default: that of the virtual model, key by key. */
  readonly retry?: RetryConfig | undefined;
  /** Which failures of this target move on to the next. Default: that of the virtual model. */
  readonly fallbackStatusCodes?: readonly StatusCode[] | undefined;
  /** Whether a request may fall back to this target. Default: true. */
  readonly fallbackCandidate?: boolean | undefined;
  /** Top-level keys that replace those of the body. JSON values; not `model` or `stream`. Default: none. */
  readonly overrideParams?: Readonly<Record<string, unknown>> | undefined;
  /** Top-level keys that this target does not take. Not `model` or `stream`. Default: none. */
  readonly dropParams?: readonly string[] | undefined;
  /** Changes to the headers sent to this target. Default: none. */
  readonly headersOverride?: HeadersOverride | undefined;
  /** The target serves only requests with all of these metadata values. Default: every request. */
  readonly metadataMatch?: Readonly<Record<string, string>> | undefined;
  /** `priority` routing only: when to put the target behind the others. Default: never. */
  readonly slaCutoff?: SlaCutoff | undefined;
  /** Default: those of the virtual model, key by key. Each may be written on the target itself instead. */
  readonly timeouts?: Timeouts | undefined;
}

export interface HeadersOverride {
  readonly set?: Readonly<Record<string, string>> | undefined;
  readonly remove?: readonly string[] | undefined;
}

/** Averages of the last 3 minutes above which a target is too slow. At least one of the two. */
export interface SlaCutoff {
  /** Above 0; may be a fraction. */
  readonly timePerOutputTokenMs?: number | undefined;
  readonly timeToFirstTokenMs?: number | undefined;
}

export interface StickyConfig {
  /** How long a session stays, in seconds, 1 to 2 147 483. */
  readonly ttlSeconds: number;
  /** What names a session: the first that a request has. At least one. */
  readonly sessionIdentifiers: readonly SessionIdentifier[];
}

export interface SessionIdentifier {
  readonly source: "headers" | "metadata" | "body";
  /** A header name, a metadata key, or a path in the body such as `metadata.user_id`. */
  readonly key: string;
}

export interface RoutingRule {
  /** Unique. Shown in logs. */
  readonly id: string;
  /** All fields that are given must match; `{}` matches every request. */
  readonly when: RuleCondition;
  /** Default: `priority`. */
  readonly routing?: Routing | undefined;
  /** At least one. */
  readonly targets: readonly TargetConfig[];
}

export interface RuleCondition {
  /** One of these subjects, as `identify` answered. */
  readonly subjects?: readonly string[] | undefined;
  /** One of these requested names; `*` at the end makes a pattern. */
  readonly models?: readonly string[] | undefined;
  /** All of these values. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

/** Clocks in ms. A target's win over those of its virtual model, these over the gateway's, key by key. */
export interface Timeouts {
  /** From the start of an attempt to release; then 408 and the next target. Default: off. */
  readonly ttftTimeoutMs?: number | undefined;
  /** A whole attempt. Default: 600 000, for a streaming request up to release only; a value that is set runs on. */
  readonly requestTimeoutMs?: number | undefined;
  /** Without a byte from the provider. Default: 300 000 for a streaming request, off for others. */
  readonly idleTimeoutMs?: number | undefined;
  /** Connecting to the provider. Default: 5 000. */
  readonly connectTimeoutMs?: number | undefined;
  /** All attempts of a request up to release. Default: off. */
  readonly totalTimeoutMs?: number | undefined;
  /** The client takes no byte. Default: 60 000. */
  readonly writeStallTimeoutMs?: number | undefined;
  /** Whether the TTFT timeout also runs where no other target is left; `exempt`: late is better than never. Default: `enforce`. */
  readonly lastTargetTtft?: "enforce" | "exempt" | undefined;
  /**
   * What an attempt that is not the last leaves of `totalTimeoutMs` to the next one. 0 or more. Where less than this is
   * left when it starts, the attempt gets all of it. Default: 5 000.
   */
  readonly minAttemptMs?: number | undefined;
}

/** The same target again: needs a listed status and a failure that may pass, or a network error. */
export interface RetryConfig {
  /** Further tries after the first, 0 to 10. Default: 0 while another target remains, 2 on the last one. */
  readonly attempts?: number | undefined;
  /** Upper end of the first random delay, doubled each time, in ms. 0 or more. Default: 100. */
  readonly delayMs?: number | undefined;
  /** Upper end of every delay, in ms. A longer `Retry-After` means no retry. 0 or more. Default: 8 000. */
  readonly maxDelayMs?: number | undefined;
  /** Default: 429, 500, 502, 503, 504, 529. */
  readonly onStatusCodes?: readonly StatusCode[] | undefined;
}
