/** Failures of requests that never reach the gateway: bad framing, bad media type, no identity. */

import type { Failure, FailureKind } from "../errors.js";

export interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  /** Default `bad-request`. */
  readonly kind?: FailureKind;
  readonly cause?: unknown;
}

/** A refusal is never retryable: the same bytes would be refused again. */
export function refusal({ kind = "bad-request", ...facts }: Refusal): Failure {
  return { kind, retryable: false, ...facts };
}

/** The client left before it got an answer. Nobody reads this; it is for the records. */
export function clientLeft(cause?: unknown): Failure {
  return refusal({
    kind: "client-abort",
    status: 499,
    code: "client_closed_request",
    message: "The client closed the connection before the response began.",
    cause,
  });
}

/** A bug of ours, for hosts without an error handler. */
export function internalFailure(cause: unknown): Failure {
  return refusal({
    kind: "internal",
    status: 500,
    code: "internal_error",
    message: "The gateway failed to handle the request.",
    cause,
  });
}
