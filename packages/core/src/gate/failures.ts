/** The failures that no provider words: one constructor each, with its message, status and code. */

import type { Failure, FailureKind } from "../errors.js";
import { lookUpName } from "./error-names.js";
import { applyDeviations, isRetryableStatus } from "./status.js";

/** Responses API: the message of a stream that ends empty or truncated. */
export const responsesNoOutput: string = "Provider closed the response stream before producing any output";

/** Slow is not broken: the next target is tried whatever the status lists say, and nothing is counted. */
export function ttftTimeout(timeoutMs: number): Failure {
  return ttft(`TTFT timeout: no first chunk received (timeout=${timeoutMs}ms)`);
}

/** The stream ended without an event while a TTFT timeout was armed. */
export function ttftEmptyStream(timeoutMs: number): Failure {
  return ttft(`TTFT timeout: stream ended before first chunk (timeout=${timeoutMs}ms)`);
}

function ttft(message: string): Failure {
  return { kind: "ttft-timeout", status: 408, code: "ttft_timeout", message, retryable: true, alwaysFallBack: true };
}

/** One attempt took longer than `requestTimeoutMs`. */
export function requestTimeout(timeoutMs: number): Failure {
  return {
    kind: "request-timeout",
    status: 408,
    code: "request_timeout",
    message: `Request timeout: no complete answer (timeout=${timeoutMs}ms)`,
    retryable: true,
  };
}

/** All attempts together took longer than `totalTimeoutMs`. */
export function totalTimeout(timeoutMs: number): Failure {
  return {
    kind: "total-timeout",
    status: 408,
    code: "request_timeout",
    message: `Request timeout: no attempt answered in time (timeout=${timeoutMs}ms)`,
    retryable: true,
  };
}

/** No byte for `idleTimeoutMs`. */
export function idleTimeout(timeoutMs: number): Failure {
  return {
    kind: "idle-timeout",
    status: 504,
    code: "upstream_idle_timeout",
    message: `Idle timeout: the provider sent nothing (timeout=${timeoutMs}ms)`,
    retryable: true,
  };
}

/** No connection within `connectTimeoutMs`. */
export function connectTimeout(timeoutMs: number): Failure {
  return {
    kind: "connect-timeout",
    status: 504,
    code: "upstream_connect_error",
    message: `Connect timeout: no connection to the provider (timeout=${timeoutMs}ms)`,
    retryable: true,
  };
}

/** No event came. */
export function emptyStream(message: string = "The provider closed the stream before sending an event"): Failure {
  return badGateway("empty-stream", "upstream_empty_stream", message);
}

/** Events came, but neither output nor a terminal; after release: the end came without completion. */
export function truncatedStream(message: string = "The provider closed the stream before it was complete"): Failure {
  return badGateway("truncated-stream", "upstream_truncated_stream", message);
}

/** @param options.alwaysFallBack the answer was billed: moving on is a wish, not a matter of status lists */
export function emptyCompletion(options: { readonly alwaysFallBack: boolean }): Failure {
  const failure = badGateway(
    "empty-completion",
    "upstream_empty_completion",
    "The provider completed the answer without any output",
  );
  return options.alwaysFallBack ? { ...failure, alwaysFallBack: true } : failure;
}

/** HTML, plain text, or JSON of something else. */
export function invalidBody(): Failure {
  return badGateway(
    "invalid-body",
    "upstream_invalid_body",
    "The provider answered with a body that is not an answer of this API",
  );
}

/** The stream ended with an event that could not be parsed. */
export function malformedEvent(): Failure {
  return badGateway(
    "malformed-event",
    "upstream_malformed_event",
    "The provider sent an event that could not be parsed and ended the stream",
  );
}

/** Responses API: `response.failed`, and the reason never came. */
export function unexplainedFailure(): Failure {
  return badGateway(
    "unexplained",
    "response_failed",
    "Provider reported a failure in the response stream without a reason",
  );
}

/** With `gate.onOverflow: "fail"`. */
export function gateOverflow(limit: "bytes" | "events"): Failure {
  return badGateway(
    "gate-overflow",
    "upstream_error",
    `The provider sent more ${limit} before its first output than the gateway holds`,
  );
}

/**
 * No connection, a reset, a broken HTTP message.
 *
 * @param connected whether a connection was established before
 */
export function networkFailure(cause: unknown, connected: boolean): Failure {
  const failure = connected
    ? badGateway("network", "upstream_error", "The connection to the provider broke")
    : badGateway("network", "upstream_connect_error", "The provider could not be reached");
  return { ...failure, cause };
}

/** A finish reason that stands for a failure, such as `network_error`. A bare `error` names nothing. */
export function finishReasonFailure(reason: string): Failure {
  if (reason.toLowerCase() === "error") {
    return badGateway("in-band", "finish_reason_error", "The provider ended the answer with an error");
  }
  const { status, originalStatus } = applyDeviations(lookUpName(reason, "code")?.status ?? 502);
  return {
    kind: "in-band",
    status,
    ...(originalStatus === undefined ? {} : { originalStatus }),
    code: reason,
    message: `The provider ended the answer with the finish reason ${reason}`,
    retryable: isRetryableStatus(status),
  };
}

/** Recorded only: nobody is left to be told. */
export function clientAbort(): Failure {
  return {
    kind: "client-abort",
    status: 499,
    code: "client_closed_request",
    message: "The client closed the connection",
    retryable: false,
  };
}

/** The client took no byte for `writeStallTimeoutMs`. Recorded as the client's. */
export function writeStall(timeoutMs: number): Failure {
  return {
    kind: "write-stall",
    status: 499,
    code: "client_write_stall",
    message: `Write stall: the client took no data (timeout=${timeoutMs}ms)`,
    retryable: false,
  };
}

/** The gateway is being closed: another instance may answer. */
export function shutdown(): Failure {
  return {
    kind: "shutdown",
    status: 503,
    code: "gateway_shutdown",
    message: "The gateway is shutting down",
    retryable: true,
  };
}

/** The gateway serves as many requests as it may. One second is a guess: how long the others take is not known. */
export function gatewayOverload(): Failure {
  return {
    kind: "overload",
    status: 503,
    code: "gateway_overloaded",
    message: "The gateway is serving as many requests as it may",
    retryable: true,
    retryAfterMs: 1000,
  };
}

/** A bug of ours. The cause is kept for the log and never shown. */
export function internal(cause: unknown): Failure {
  return {
    kind: "internal",
    status: 500,
    code: "internal_error",
    message: "The gateway failed to handle the request",
    retryable: false,
    cause,
  };
}

function badGateway(kind: FailureKind, code: string, message: string): Failure {
  return { kind, status: 502, code, message, retryable: true };
}

/** What a target did, whatever status it maps to. The kinds that are missing here are slowness, a policy or ours. */
const countedKinds: ReadonlySet<FailureKind> = new Set<FailureKind>([
  "unexplained",
  "empty-stream",
  "truncated-stream",
  "invalid-body",
  "malformed-event",
  "network",
  "request-timeout",
  "idle-timeout",
  "connect-timeout",
]);

/** Whether a failure says something about the target's health. */
export function countsTowardCooldown(failure: Failure): boolean {
  if (failure.kind === "http" || failure.kind === "in-band") return statusCounts(failure);
  return countedKinds.has(failure.kind);
}

function statusCounts({ status, policy }: Failure): boolean {
  if (status === 401 || status === 408 || status === 424 || status === 429) return true;
  if (status === 403) return policy !== true;
  return status >= 500 && status !== 501;
}
