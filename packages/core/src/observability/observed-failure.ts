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
    cause: causeFacts(failure),
  };
}

function causeFacts({ kind, cause }: Failure): ObservedFailure["cause"] {
  if (!(cause instanceof Error)) return undefined;
  const { code } = cause as { readonly code?: unknown };
  return {
    name: name.test(cause.name) ? cause.name : "Error",
    code: typeof code === "string" && name.test(code) ? code : undefined,
    // For a bug of ours, where it is. The message may quote what was being read.
    stack: kind === "internal" ? frames(cause) : undefined,
  };
}

function frames({ stack }: Error): string {
  return (stack ?? "")
    .split("\n")
    .filter((line) => /^\s+at /.test(line))
    .join("\n");
}
