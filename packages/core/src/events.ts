/**
 * What `gateway.handle()` yields, and what observers are told.
 *
 * An adapter iterates, and commits headers on the one `released` or `failed` event. Times are in ms.
 */

import type { Failure } from "./errors.js";

/** One attempt begins. Counted from 1 over the whole request. */
export interface AttemptStartEvent {
  readonly type: "attempt-start";
  readonly attempt: number;
  /** `provider/model`. */
  readonly target: string;
}

/** An attempt failed before commit: another may follow. */
export interface AttemptRejectEvent {
  readonly type: "attempt-reject";
  readonly attempt: number;
  readonly target: string;
  readonly failure: Failure;
  readonly durationMs: number;
}

/** The response may be started. Exactly one `released` or `failed` per request, and nothing after it. */
export interface ReleasedEvent {
  readonly type: "released";
  readonly status: number;
  /** Lower-case names; what the adapter sets. Read it of the event itself: it may be no property of its own, and is not spread. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** The same as name, value, name, value, …: cheaper to be had and to be written. Absent: there is the record alone. */
  readonly headerPairs?: readonly (string | readonly string[])[] | undefined;
  readonly body: ReleasedBody;
  /** `writeStallTimeoutMs` of the target that answered, in ms. Absent: the gateway's. */
  readonly writeStallTimeoutMs?: number | undefined;
}

/** No target could answer. The body is complete and in the client's protocol. */
export interface FailedEvent {
  readonly type: "failed";
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: string;
  readonly failure: Failure;
}

export type GatewayEvent = AttemptStartEvent | AttemptRejectEvent | ReleasedEvent | FailedEvent;

/** How a released body ended. */
export type BodyEnd =
  /** Complete as far as the provider's bytes go: end the response. */
  | { readonly type: "finish" }
  /** Broken: the connection is destroyed once what was written is flushed, so that it never looks complete. */
  | { readonly type: "fail"; readonly failure: Failure };

/** Why a reader leaves a body before its end. */
export type CancelReason = "client-abort" | "write-stall";

/** Where a released body is written: the fast door for adapters. */
export interface BodySink {
  /** False: write no more until `body.resume()` is called. */
  write(chunk: Uint8Array): boolean;
  /** Called once, after the last `write`. */
  end(end: BodyEnd): void;
}

/**
 * The bytes after release: held ones first, then the rest, untouched. Read it once, by iterating (a broken stream
 * throws a `GatewayError` after its last byte) or with `pipeTo`.
 */
export interface ReleasedBody extends AsyncIterable<Uint8Array> {
  /** Pushes chunks into the sink as they come, without an async hop a chunk. */
  pipeTo(sink: BodySink): void;
  /** The sink takes bytes again. */
  resume(): void;
  /** The reader leaves: aborts the upstream at once. Idempotent. Default: `client-abort`. */
  cancel(reason?: CancelReason): void;
}
