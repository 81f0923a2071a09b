/**
 * What observers are told: plain data, one event per fact. Times are in ms; `at` is epoch ms, all lengths come from a
 * monotonic clock. No event holds a credential, a header value or the text of a body, so no message of a provider either:
 * only names, numbers and what `identify` and the metadata header said of the caller.
 *
 * A request is `request-start`, then per attempt `attempt-start` and its end, then `request-end`: each of the two exactly
 * once, and nothing after `request-end`. An attempt ends in `attempt-reject`, or after `release` in the first of
 * `stream-end`, `stream-fail` and a `client-abort` that names it.
 */

import type { FailureKind } from "../errors.js";
import type { ProviderType } from "../config/provider-config.js";
import type { ProtocolName } from "../gate/protocols/protocol.js";
import type { TokenUsage } from "../gate/usage.js";

export type { TokenUsage } from "../gate/usage.js";

/** On every event: an observer needs no memory to tell what a request was. */
export interface RequestFacts {
  /** Unique per request; also sent to the client as `x-tfy-request-id`. */
  readonly requestId: string;
  /** When it happened, epoch ms. */
  readonly at: number;
  /** The API that was called, e.g. `anthropic-messages`. */
  readonly protocol: ProtocolName;
  /** Whether the client asked for a stream. False where the request was refused before that was read. */
  readonly streaming: boolean;
  /** The virtual model as configured, or `provider/model` as the client named it; `unknown` where it was refused. */
  readonly requestedModel: string;
  /** Whether that name is one of the configuration. Else it is the client's, and may be anything. */
  readonly modelConfigured: boolean;
  /** Id of the routing rule that decided. */
  readonly rule?: string | undefined;
  /** From `identify`. */
  readonly subject?: string | undefined;
  /** From `identify` and the metadata header. */
  readonly metadata?: Readonly<Record<string, string>> | undefined;
}

export interface AttemptFacts extends RequestFacts {
  /** Counted from 1 over the whole request. */
  readonly attempt: number;
  /** `provider/model`. */
  readonly target: string;
  /** As configured. */
  readonly provider: string;
  readonly model: string;
  /** Whether the target stands in the configuration by this name. Else the client named its model. */
  readonly targetConfigured: boolean;
}

/** A failure without its wording, which is for the client. */
export interface ObservedFailure {
  readonly kind: FailureKind;
  /** 400 to 599; the true one of the attempt, whatever the client is told. 499: the client left. */
  readonly status: number;
  /** The provider's status where ours deviates: 529 for a 503. */
  readonly originalStatus?: number | undefined;
  /** The provider's own code where it sent one that is a name, else the gate's, e.g. `upstream_empty_stream`. */
  readonly code: string;
  /** The provider's own error type, where it sent one that is a name. */
  readonly type?: string | undefined;
  readonly retryable: boolean;
  /** How long the provider asked to wait, in ms. */
  readonly retryAfterMs?: number | undefined;
  /** What the runtime reported, without its message: an error's name and system code, such as `ECONNREFUSED`. */
  readonly cause?:
    | { readonly name: string; readonly code?: string | undefined; readonly stack?: string | undefined }
    | undefined;
}

/** A request was accepted, or refused before an attempt: then `request-end` follows at once. */
export interface RequestStartEvent extends RequestFacts {
  readonly type: "request-start";
}

export interface ObservedAttemptStartEvent extends AttemptFacts {
  readonly type: "attempt-start";
  /** The same target again. */
  readonly retry: boolean;
  /** Another target, after one that failed. */
  readonly fallback: boolean;
  readonly providerType: ProviderType;
  /** Scheme, host and port of the provider. */
  readonly origin: string;
}

/** An attempt failed before commit, or the client left during it (`failure.kind` is `client-abort`). */
export interface ObservedAttemptRejectEvent extends AttemptFacts {
  readonly type: "attempt-reject";
  readonly failure: ObservedFailure;
  readonly durationMs: number;
  /** From the first held byte to the failure; 0 where nothing was held. */
  readonly holdMs: number;
  /** What the provider told before it failed: such an attempt may be billed. */
  readonly usage?: TokenUsage | undefined;
}

/** The response was committed. From here nothing can be retried. */
export interface ReleaseEvent extends AttemptFacts {
  readonly type: "release";
  /** The provider's, 200 to 299. */
  readonly status: number;
  /** From the start of the attempt to the first output (for an ungated answer: to its head). */
  readonly ttftMs: number;
  /** From the first held byte to release; 0 where nothing was held back. */
  readonly holdMs: number;
  readonly heldBytes: number;
  /**
   * `output`; `outcome`: an end without output that the client has to see, such as a refusal; `empty`: an empty completion
   * that was let through; `overflow`: a limit; `ungated`.
   */
  readonly reason: string;
}

/** Gave up holding at a limit. */
export interface GateOverflowEvent extends AttemptFacts {
  readonly type: "gate-overflow";
  readonly limit: "bytes" | "events" | "time" | "lifecycle";
  readonly heldBytes: number;
  /** False: the attempt failed, by `gate.onOverflow: "fail"`. */
  readonly released: boolean;
}

/** The provider's stream ended as its protocol says (or cleanly, from a compatible provider: `complete` is false). */
export interface StreamEndEvent extends AttemptFacts {
  readonly type: "stream-end";
  readonly complete: boolean;
  /** From the start of the attempt. */
  readonly durationMs: number;
  /** As in `release`. */
  readonly ttftMs: number;
  readonly bytes: number;
  readonly usage?: TokenUsage | undefined;
  /** The model that answered, in the provider's words. */
  readonly responseModel?: string | undefined;
}

/** The provider failed after commit. At most once per attempt. */
export interface StreamFailEvent extends AttemptFacts {
  readonly type: "stream-fail";
  readonly failure: ObservedFailure;
  /** From the start of the attempt. */
  readonly durationMs: number;
  readonly bytes: number;
  /** As far as it was told up to then. */
  readonly usage?: TokenUsage | undefined;
  readonly responseModel?: string | undefined;
}

/** Failures of this attempt made the target rest, or rest again: until then it is tried last. */
export interface CooldownStartEvent extends AttemptFacts {
  readonly type: "cooldown-start";
  /** Epoch ms. */
  readonly until: number;
  /** Rests in a row, from 1. */
  readonly streak: number;
}

/** The target answered after a rest: it is tried in its place again. */
export interface CooldownEndEvent extends AttemptFacts {
  readonly type: "cooldown-end";
}

/** The client left, or took no bytes for too long (`failure.kind` is `write-stall`). */
export interface ClientAbortEvent extends RequestFacts {
  readonly type: "client-abort";
  /** Before release: `waiting`; after it: `streaming`. */
  readonly phase: "waiting" | "streaming";
  readonly failure: ObservedFailure;
  /** The attempt whose released stream was cut short by it; absent where there was none. */
  readonly attempt?: Omit<AttemptFacts, keyof RequestFacts> | undefined;
  /** Of that attempt, as far as it was told up to then. */
  readonly usage?: TokenUsage | undefined;
}

/** The last event of every request. */
export interface RequestEndEvent extends RequestFacts {
  readonly type: "request-end";
  /** What the client got, or 499 where it left or took no bytes: also after it was sent a status (`released`). */
  readonly status: number;
  /**
   * `success`; `failure`: of the last target, or of a stream after release, or a bug; `refused`: answered without an
   * attempt, for bad input, an unknown model, missing rights, or a gateway that is closing or full; `client-abort`.
   */
  readonly outcome: "success" | "failure" | "refused" | "client-abort";
  /** The true one: a 401 of a target's key, where the client is told 502. */
  readonly failure?: ObservedFailure | undefined;
  readonly attempts: number;
  /** Target of the last attempt. */
  readonly target?: string | undefined;
  readonly targetConfigured?: boolean | undefined;
  /** Whether the response had begun. */
  readonly released: boolean;
  readonly durationMs: number;
  /** What the gateway itself took until the answer began: neither attempts nor waits between them. Absent where it never did. */
  readonly overheadMs?: number | undefined;
}

export type ObserverEvent =
  | RequestStartEvent
  | ObservedAttemptStartEvent
  | ObservedAttemptRejectEvent
  | ReleaseEvent
  | GateOverflowEvent
  | StreamEndEvent
  | StreamFailEvent
  | CooldownStartEvent
  | CooldownEndEvent
  | ClientAbortEvent
  | RequestEndEvent;

/** W3C trace context. https://www.w3.org/TR/trace-context/ */
export interface TraceHeaders {
  readonly traceparent: string;
  readonly tracestate?: string | undefined;
}

/**
 * An observer that throws or is slow never touches a request: errors are swallowed, promises are not awaited. Events are
 * told synchronously, in the asynchronous context of whoever iterates `gateway.handle()`.
 */
export interface Observer {
  onEvent(event: ObserverEvent): void;
  /**
   * Asked after `attempt-start`: the trace context to send to the provider, in place of the client's. The first observer
   * that gives one is taken.
   */
  traceHeaders?(attempt: { readonly requestId: string; readonly attempt: number }): TraceHeaders | undefined;
}
