/** A failure as observers see it: nothing that a provider or a client worded. */

import type { Failure } from "../errors.js";
import type { ObservedFailure } from "./observer.js";

/** What a name looks like. Some servers put whole sentences where a code belongs. */
const name = /^[\w.:/-]{1,64}$/;

export function observedFailure(failure: Failure): ObservedFailure {
  const { kind, status, originalStatus, code, type, retryable, retryAfterMs } = failure;
  return {
    kind,
    status,
    originalStatus,
    code: name.test(code) ? code : "upstream_error",
    type: type !== undefined && name.test(type) ? type : undefined,
    retryable,
    retryAfterMs,
    // For a bug of ours, where it is. The message may quote what was being read.
    cause: errorFacts(failure.cause, failure.kind === "internal"),
  };
}

/** Name and system code of an error: its message may hold an address with a password in it. */
export function errorFacts(error: unknown, withStack: boolean = false): ObservedFailure["cause"] {
  if (!(error instanceof Error)) return undefined;
  const { code } = error as { readonly code?: unknown };
  return {
    name: name.test(error.name) ? error.name : "Error",
    code: typeof code === "string" && name.test(code) ? code : undefined,
    stack: withStack ? frames(error) : undefined,
  };
}

function frames({ stack }: Error): string {
  return (stack ?? "")
    .split("\n")
    .filter((line) => /^\s+at /.test(line))
    .join("\n");
}
