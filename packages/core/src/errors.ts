/**
 * Every failure of this package, as facts.
 *
 * A `Failure` is plain data: what went wrong with one attempt (or one request), the HTTP status it maps to, and what may
 * be done about it. The machines pass failures around; nothing is thrown inside them. `GatewayError` wraps a failure
 * for callers who work with exceptions (`gateStream`), `ConfigError` is what the factories throw.
 */

/** What kind of thing failed. Decides cooldown, fallback and how it is recorded; the status alone cannot. */
export type FailureKind =
  /** The provider answered with a non-2xx status. */
  | "http"
  /** The provider reported an error inside a 2xx answer. */
  | "in-band"
  /** Responses API: `response.failed` and never a reason. */
  | "unexplained"
  /** No event came. */
  | "empty-stream"
  /** Events came, but neither output nor a terminal. */
  | "truncated-stream"
  /** A terminal event without output. */
  | "empty-completion"
  /** Not a stream of the protocol and not a JSON answer of it: HTML, plain text, foreign JSON. */
  | "invalid-body"
  /** Ended with an event that could not be parsed. */
  | "malformed-event"
  /** More than `gate.maxHeldBytes` or `gate.maxHeldEvents` before output, with `gate.onOverflow: "fail"`. */
  | "gate-overflow"
  /** No connection, a reset, a broken HTTP message. */
  | "network"
  | "ttft-timeout"
  | "request-timeout"
  | "idle-timeout"
  | "connect-timeout"
  | "total-timeout"
  /** The client left. */
  | "client-abort"
  /** The client takes no bytes (after release). */
  | "write-stall"
  /** The request itself cannot be served: bad input, unknown model, no target for this API. */
  | "bad-request"
  /** The gateway is being closed. */
  | "shutdown"
  /** `limits.maxConcurrent` requests are being served and no more may wait. */
  | "overload"
  /** A bug of ours. */
  | "internal";

export interface Failure {
  readonly kind: FailureKind;
  /** HTTP status, 400 to 599 (499 for a client that left). */
  readonly status: number;
  /** The provider's status before the deviations of the status rules: 529 for a 503 that was 529. For status lists. */
  readonly originalStatus?: number | undefined;
  /** The provider's own code where it sent one, else the gate's (`ttft_timeout`, `upstream_empty_stream`, …). */
  readonly code: string;
  /** For the client. Never holds a credential, a header value or a request body. */
  readonly message: string;
  /** The provider's own error type, where it sent one. */
  readonly type?: string | undefined;
  readonly param?: string | null | undefined;
  /** Whether the same request may succeed at the same target a moment later. */
  readonly retryable: boolean;
  /** How long the provider asked to wait, in ms: header, structured field, or wording. */
  readonly retryAfterMs?: number | undefined;
  /** The provider sent `x-should-retry: false`. */
  readonly shouldNotRetry?: boolean | undefined;
  /** A 403 for policy or moderation: the request's fault, not that of the target's credentials. */
  readonly policy?: boolean | undefined;
  /** Move to the next target whatever the status lists say (TTFT timeout, billed empty completion). */
  readonly alwaysFallBack?: boolean | undefined;
  /** What the runtime reported, for logs and debuggers. Never shown to a client. */
  readonly cause?: unknown;
}

/** Brands survive two copies of this package in one process, which `instanceof` does not. */
const gatewayErrorBrand = Symbol.for("first-chunk.GatewayError");

/** The error form of a {@link Failure}. Test `isGatewayError(error)` or `error.code`, not `instanceof`. */
export class GatewayError extends Error {
  override readonly name: string = "GatewayError";
  readonly failure: Failure;

  constructor(failure: Failure) {
    super(failure.message, failure.cause === undefined ? undefined : { cause: failure.cause });
    this.failure = failure;
    Object.defineProperty(this, gatewayErrorBrand, { value: true });
  }

  /** HTTP status, 400 to 599. */
  get status(): number {
    return this.failure.status;
  }
  /** The provider's own code where it sent one, else the gate's. */
  get code(): string {
    return this.failure.code;
  }
  /** Whether the same request may succeed at the same target a moment later. */
  get retryable(): boolean {
    return this.failure.retryable;
  }
  get kind(): FailureKind {
    return this.failure.kind;
  }
  /** The provider's own error type, where it sent one. */
  get type(): string | undefined {
    return this.failure.type;
  }
  /** How long the provider asked to wait, in ms. */
  get retryAfterMs(): number | undefined {
    return this.failure.retryAfterMs;
  }
}

export function isGatewayError(value: unknown): value is GatewayError {
  return typeof value === "object" && value !== null && gatewayErrorBrand in value;
}

const configErrorBrand = Symbol.for("first-chunk.ConfigError");

/** A mistake in the configuration. Thrown by the factories, never while a request is served. */
export class ConfigError extends Error {
  override readonly name: string = "ConfigError";
  readonly code: "ERR_FIRST_CHUNK_CONFIG" = "ERR_FIRST_CHUNK_CONFIG";
  /** Where, e.g. `models.fast-chat.targets[1].target`. */
  readonly path: string;

  /** @param remedy what would be right, as a sentence */
  constructor(path: string, remedy: string) {
    super(path === "" ? remedy : `${path}: ${remedy}`);
    this.path = path;
    Object.defineProperty(this, configErrorBrand, { value: true });
  }
}

export function isConfigError(value: unknown): value is ConfigError {
  return typeof value === "object" && value !== null && configErrorBrand in value;
}
