/** The clocks of one attempt, out of the configuration and the request. */

import type { ResolvedGateOptions, ResolvedTimeouts } from "../config/resolved.js";
import type { AttemptClocks } from "./attempt.js";

export interface ClockFacts {
  readonly streaming: boolean;
  /** From the request's headers, which win over all. In ms. */
  readonly ttftTimeoutMs: number | undefined;
  readonly requestTimeoutMs: number | undefined;
  readonly total: { readonly at: number; readonly timeoutMs: number } | undefined;
}

/** @param anotherTarget one may be tried after this attempt */
export function attemptClocks(
  timeouts: ResolvedTimeouts,
  gate: ResolvedGateOptions,
  facts: ClockFacts,
  anotherTarget: boolean,
): AttemptClocks {
  const { streaming, requestTimeoutMs, total } = facts;
  return {
    ttftTimeoutMs: streaming && (anotherTarget || timeouts.lastTargetTtft) ? (facts.ttftTimeoutMs ?? timeouts.ttftTimeoutMs) : undefined,
    requestTimeoutMs: requestTimeoutMs ?? timeouts.requestTimeoutMs,
    requestTimeoutEndsAtRelease: streaming && requestTimeoutMs === undefined && !timeouts.requestTimeoutIsSet,
    idleTimeoutMs: streaming || timeouts.idleTimeoutIsSet ? timeouts.idleTimeoutMs : undefined,
    connectTimeoutMs: timeouts.connectTimeoutMs,
    total,
    maxHoldMs: gate.maxHoldMs,
    failureDetailTimeoutMs: gate.failureDetailTimeoutMs,
    writeStallTimeoutMs: timeouts.writeStallTimeoutMs,
  };
}
