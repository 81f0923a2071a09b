/**
 * One line a request, one a rejected attempt, through any pino-shaped logger. Lines hold names, statuses, codes and
 * times: no body text (so no provider's message either), no header values.
 */

import type { Logger } from "../config.js";
import type { Failure } from "../errors.js";
import type { Observer, ObserverEvent } from "./observer.js";

type Level = "debug" | "info" | "warn" | "error";

/** How loud a failure is. An Anthropic overload is part of daily life, and counted all the same. */
export function failureLevel(failure: Failure): Level {
  if (failure.kind === "internal") return "error";
  if (failure.kind === "client-abort" || failure.kind === "write-stall" || failure.kind === "bad-request") return "debug";
  if (failure.kind === "empty-completion") return "info";
  return failure.code === "overloaded_error" || failure.type === "overloaded_error" ? "debug" : "warn";
}

function facts(failure: Failure): Record<string, unknown> {
  return { status: failure.status, code: failure.code, kind: failure.kind };
}

export class LogObserver implements Observer {
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  onEvent(event: ObserverEvent): void {
    const { requestId } = event;
    switch (event.type) {
      case "attempt-reject": {
        const { target, attempt, durationMs, failure } = event;
        this.#logger[failureLevel(failure)]({ requestId, target, attempt, durationMs, ...facts(failure) }, "attempt rejected");
        return;
      }
      case "stream-fail": {
        const { target, attempt, durationMs, bytes, failure } = event;
        this.#logger[failureLevel(failure)]({ requestId, target, attempt, durationMs, bytes, ...facts(failure) }, "stream failed after release");
        return;
      }
      case "gate-overflow": {
        const { target, attempt, limit, heldBytes } = event;
        this.#logger.info({ requestId, target, attempt, limit, heldBytes }, "gate limit reached");
        return;
      }
      case "request-end":
        this.#end(event);
    }
  }

  #end({ requestId, status, outcome, attempts, target, durationMs, failure }: ObserverEvent & { type: "request-end" }): void {
    const line = { requestId, outcome, attempts, target, durationMs, ...(failure === undefined ? {} : facts(failure)), status };
    this.#logger[failure === undefined ? "info" : failureLevel(failure)](line, "request ended");
  }
}
