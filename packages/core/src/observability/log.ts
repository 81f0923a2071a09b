/**
 * One line a request and one a rejected attempt, through any pino-shaped logger; besides, a line each for a stream that
 * fails after release, a gate limit, an empty completion that was let through, and a target that begins or ends to rest.
 * Lines hold names, statuses, codes and times: no text of a body, so no provider's message either, no header values.
 */

import type { Logger } from "../config.js";
import type { ObservedFailure, Observer, ObserverEvent, RequestEndEvent } from "./observer.js";

export type LogLevel = "debug" | "info" | "warn" | "error";

/** How loud a failure is. An Anthropic overload is part of daily life, and counted all the same. */
export function failureLevel({ kind, code, type }: ObservedFailure): LogLevel {
  switch (kind) {
    case "internal":
      return "error";
    case "client-abort":
    case "write-stall":
    case "bad-request":
      return "debug";
    case "empty-completion":
    case "shutdown":
      return "info";
    default:
      return code === "overloaded_error" || type === "overloaded_error" ? "debug" : "warn";
  }
}

export class LogObserver implements Observer {
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  onEvent(event: ObserverEvent): void {
    switch (event.type) {
      case "attempt-reject":
        return this.#log(
          failureLevel(event.failure),
          { ...attemptFacts(event), ...failureFacts(event.failure) },
          "attempt rejected",
        );
      case "stream-fail": {
        const facts = { ...attemptFacts(event), bytes: event.bytes, ...failureFacts(event.failure) };
        return this.#log(failureLevel(event.failure), facts, "stream failed after release");
      }
      case "gate-overflow": {
        const { limit, heldBytes, released } = event;
        return this.#log("info", { ...attemptFacts(event), limit, heldBytes, released }, "gate limit reached");
      }
      case "release":
        if (event.reason === "empty") this.#log("info", attemptFacts(event), "empty completion released");
        return;
      case "cooldown-start":
        return this.#log("info", { ...attemptFacts(event), until: event.until, streak: event.streak }, "target rests");
      case "cooldown-end":
        return this.#log("info", attemptFacts(event), "target is back");
      case "request-end":
        return this.#log(
          event.failure === undefined ? "info" : failureLevel(event.failure),
          endFacts(event),
          "request ended",
        );
    }
  }

  /** As a method of the logger: pino's need their `this`. */
  #log(level: LogLevel, facts: object, message: string): void {
    this.#logger[level](facts, message);
  }
}

interface AttemptLine {
  readonly requestId: string;
  readonly target: string;
  readonly attempt: number;
  readonly durationMs?: number;
}

function attemptFacts({ requestId, target, attempt, durationMs }: AttemptLine): object {
  return { requestId, target, attempt, ...(durationMs === undefined ? {} : { durationMs }) };
}

function failureFacts({ status, code, kind, cause }: ObservedFailure): object {
  return { status, code, kind, ...(cause === undefined ? {} : { cause }) };
}

/** The status is that which the client got; a failure may have had another one. */
function endFacts({
  requestId,
  protocol,
  requestedModel,
  rule,
  outcome,
  attempts,
  target,
  durationMs,
  failure,
  status,
}: RequestEndEvent): object {
  const failed = failure === undefined ? {} : failureFacts(failure);
  const decided = rule === undefined ? {} : { rule };
  return {
    requestId,
    protocol,
    model: requestedModel,
    ...decided,
    outcome,
    attempts,
    target,
    durationMs,
    ...failed,
    status,
  };
}
