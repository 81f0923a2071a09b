/** The clocks of one attempt, out of the configuration and the request. */

import type { ResolvedTimeouts } from "../config/resolved.js";
import type { ResolvedGateOptions } from "../gate/options.js";

/** Lengths in ms; absent: off. */
export interface AttemptClocks {
  readonly ttftTimeoutMs: number | undefined;
  readonly requestTimeoutMs: number;
  /** The request timeout ends at release. */
  readonly requestTimeoutEndsAtRelease: boolean;
  readonly idleTimeoutMs: number | undefined;
  readonly connectTimeoutMs: number;
  /** Over all attempts up to release, or this attempt's share of it: when, and how long it was. */
  readonly total: { readonly at: number; readonly timeoutMs: number } | undefined;
  /** 0: never. Not applied under a TTFT timeout. */
  readonly maxHoldMs: number;
  readonly failureDetailTimeoutMs: number;
  readonly writeStallTimeoutMs: number;
}

export interface ClockFacts {
  readonly streaming: boolean;
  /** From the request's headers, which win over all. In ms. */
  readonly ttftTimeoutMs: number | undefined;
  readonly requestTimeoutMs: number | undefined;
  /** Of the request, on the clock. */
  readonly startedAt: number;
}

/** The attempt that the clocks are for. */
export interface ClockedAttempt {
  readonly startedAt: number;
  /** One may be tried after it. */
  readonly anotherTarget: boolean;
}

export function attemptClocks(
  timeouts: ResolvedTimeouts,
  gate: ResolvedGateOptions,
  facts: ClockFacts,
  attempt: ClockedAttempt,
): AttemptClocks {
  const { streaming, requestTimeoutMs } = facts;
  const exempt = !attempt.anotherTarget && timeouts.lastTargetTtft === "exempt";
  return {
    ttftTimeoutMs: streaming && !exempt ? (facts.ttftTimeoutMs ?? timeouts.ttftTimeoutMs) : undefined,
    requestTimeoutMs: requestTimeoutMs ?? timeouts.requestTimeoutMs,
    requestTimeoutEndsAtRelease: streaming && requestTimeoutMs === undefined && !timeouts.requestTimeoutIsSet,
    idleTimeoutMs: streaming || timeouts.idleTimeoutIsSet ? timeouts.idleTimeoutMs : undefined,
    connectTimeoutMs: timeouts.connectTimeoutMs,
    total: totalClock(timeouts, facts.startedAt, attempt),
    maxHoldMs: gate.maxHoldMs,
    failureDetailTimeoutMs: gate.failureDetailTimeoutMs,
    writeStallTimeoutMs: timeouts.writeStallTimeoutMs,
  };
}

/** When nothing begins at the target any more, on the clock. */
export function totalDeadline({ totalTimeoutMs }: ResolvedTimeouts, requestStartedAt: number): number {
  return totalTimeoutMs === undefined ? Infinity : requestStartedAt + totalTimeoutMs;
}

/** All that is left; with another target to come, all but `minAttemptMs`, unless no more than that is left anyway. */
function totalClock(
  timeouts: ResolvedTimeouts,
  requestStartedAt: number,
  attempt: ClockedAttempt,
): AttemptClocks["total"] {
  const { totalTimeoutMs, minAttemptMs } = timeouts;
  if (totalTimeoutMs === undefined) return undefined;
  const at = totalDeadline(timeouts, requestStartedAt);
  const share = at - minAttemptMs - attempt.startedAt;
  if (!attempt.anotherTarget || minAttemptMs === 0 || share <= 0) return { at, timeoutMs: totalTimeoutMs };
  return { at: at - minAttemptMs, timeoutMs: Math.round(share) };
}
