/**
 * What observers are told: plain data, one event per fact. Times are in ms; `at` is epoch ms, all durations come from a
 * monotonic clock. No event holds a credential, a header value or a byte of a body.
 */

import type { Failure } from "../errors.js";
import type { ProtocolName } from "../gate/protocols/protocol.js";

interface RequestFacts {
  /** Unique per request; also sent to the client as `x-tfy-request-id`. */
  readonly requestId: string;
  /** When it happened, epoch ms. */
  readonly at: number;
}

interface AttemptFacts extends RequestFacts {
  /** Counted from 1 over the whole request. */
  readonly attempt: number;
  /** `provider/model`. */
  readonly target: string;
  readonly provider: string;
  readonly model: string;
}

/** Tokens as the provider reported them; a field is absent where it did not. */
export interface TokenUsage {
  readonly inputTokens?: number | undefined;
  readonly outputTokens?: number | undefined;
  /** Part of the input that was read from a prompt cache. */
  readonly cachedTokens?: number | undefined;
  /** Part of the output that was reasoning. */
  readonly reasoningTokens?: number | undefined;
}

/** A request was accepted and resolved to its targets. */
export interface RequestStartEvent extends RequestFacts {
  readonly type: "request-start";
  /** The API that was called, e.g. `anthropic-messages`. */
  readonly protocol: ProtocolName;
  readonly streaming: boolean;
  /** Virtual model or `provider/model` that the client asked for, where it is configured; else `unknown`. */
  readonly requestedModel: string;
  readonly subject?: string | undefined;
}

export interface ObservedAttemptStartEvent extends AttemptFacts {
  readonly type: "attempt-start";
  /** Whether it is the same target again. */
  readonly retry: boolean;
}

/** An attempt failed before commit. */
export interface ObservedAttemptRejectEvent extends AttemptFacts {
  readonly type: "attempt-reject";
  readonly failure: Failure;
  readonly durationMs: number;
}

/** The response was committed. From here nothing can be retried. */
export interface ReleaseEvent extends AttemptFacts {
  readonly type: "release";
  readonly status: number;
  /** From the start of the attempt to the first output (for an ungated answer: to its head). */
  readonly ttftMs: number;
  /** From the first held byte to release; 0 where nothing was held back. */
  readonly holdMs: number;
  readonly heldBytes: number;
  /** Why: `output`, `outcome`, `empty`, `overflow`, `ungated`, `body`. */
  readonly reason: string;
}

/** Gave up holding at a limit and released (or failed, with `gate.onOverflow: "fail"`). */
export interface GateOverflowEvent extends AttemptFacts {
  readonly type: "gate-overflow";
  readonly limit: "bytes" | "events" | "time" | "lifecycle";
  readonly heldBytes: number;
}

/** The stream ended as its protocol says (or cleanly, from a compatible provider: `complete` is false). */
export interface StreamEndEvent extends AttemptFacts {
  readonly type: "stream-end";
  readonly complete: boolean;
  readonly durationMs: number;
  readonly bytes: number;
  readonly usage?: TokenUsage | undefined;
}

/** The provider failed after commit. At most once per attempt. */
export interface StreamFailEvent extends AttemptFacts {
  readonly type: "stream-fail";
  readonly failure: Failure;
  readonly durationMs: number;
  readonly bytes: number;
}

export interface ClientAbortEvent extends RequestFacts {
  readonly type: "client-abort";
  /** Before release: `waiting`; after it: `streaming`. */
  readonly phase: "waiting" | "streaming";
  readonly failure: Failure;
}

/** The last event of every request. */
export interface RequestEndEvent extends RequestFacts {
  readonly type: "request-end";
  /** What the client got: the status sent, or 499 when it left before one. */
  readonly status: number;
  /** `success`, or `failure` with the failure the client (or, after release, the stream) ended in. */
  readonly outcome: "success" | "failure" | "client-abort";
  readonly failure?: Failure | undefined;
  readonly attempts: number;
  /** Target of the last attempt. */
  readonly target?: string | undefined;
  readonly durationMs: number;
}

export type ObserverEvent =
  | RequestStartEvent
  | ObservedAttemptStartEvent
  | ObservedAttemptRejectEvent
  | ReleaseEvent
  | GateOverflowEvent
  | StreamEndEvent
  | StreamFailEvent
  | ClientAbortEvent
  | RequestEndEvent;

/** An observer that throws or is slow never touches a request: errors are swallowed, promises are not awaited. */
export interface Observer {
  onEvent(event: ObserverEvent): void;
}
