/**
 * The plan: which target next, after which wait, or none. The second of the two machines that carry the law.
 *
 * - A retry is the same target again: within its budget, for a listed status of a retryable class (or a network error),
 *   unless the provider said not to. `Retry-After` sets the delay; one longer than `maxDelayMs` means no retry.
 * - A fallback is the next target in the order that may be fallen back to: for a status on the failed target's list, a
 *   network error, or a failure that always moves on (a TTFT timeout).
 * - The next target is chosen at the moment it is needed: the first in the order that does not rest, else the one that is
 *   back soonest. A resting target is put last, never left out. One with `fallbackCandidate: false` is tried only as the
 *   first of the order, before any other.
 * - Nothing begins at the total deadline or after it, and no retry in the time that is kept for the next target.
 *
 * No clock, no timer, no I/O. Upstream calls per request are at most the sum over the targets of 1 + their retries.
 */

import { matchStatus, type StatusCode } from "../config/status-code.js";
import type { Failure } from "../errors.js";

/** The part of a target's configuration that the plan reads. */
export interface PlanTarget {
  readonly retry: {
    /** Further tries after the first. Undefined: none while another target remains, {@link lastTargetRetries} on the last. */
    readonly attempts: number | undefined;
    readonly delayMs: number;
    readonly maxDelayMs: number;
    readonly onStatusCodes: readonly StatusCode[];
  };
  readonly fallbackStatusCodes: readonly StatusCode[];
  /** False: never fallen back *to*. */
  readonly fallbackCandidate: boolean;
}

/** Default number of retries on the last target. */
export const lastTargetRetries = 2;

/** For each target 0 where it may be tried in its place, else when it is back, on any one scale. Absent: none rests. */
export type BackAt = readonly number[];

export type PlanInput =
  | { readonly type: "start"; readonly now: number; readonly backAt?: BackAt | undefined }
  | { readonly type: "rejected"; readonly failure: Failure; readonly now: number; readonly backAt?: BackAt | undefined }
  | { readonly type: "waited"; readonly now: number };

export type PlanOutput =
  /** `target` is an index into the list. `anotherTarget`: one may be tried after it. */
  | { readonly type: "attempt"; readonly target: number; readonly retry: boolean; readonly anotherTarget: boolean }
  | { readonly type: "wait"; readonly until: number }
  /** The failure to answer with, and which of the rejections (from 0) it was. */
  | { readonly type: "give-up"; readonly failure: Failure; readonly rejection: number };

type PlanState =
  | { readonly phase: "ready" }
  | { readonly phase: "attempting"; readonly target: number; readonly retries: number }
  | { readonly phase: "waiting"; readonly target: number; readonly retries: number }
  | { readonly phase: "over" };

/** Statuses of a target which was fallen back to that do not hide an earlier failure that may pass. */
const hiding: ReadonlySet<number> = new Set([400, 401, 402, 403, 404, 413, 422]);

/** Kinds after which no target can help. */
const final: ReadonlySet<string> = new Set(["client-abort", "total-timeout", "shutdown", "internal"]);

interface Rejection {
  readonly failure: Failure;
  /** Of a target which was fallen back to. */
  readonly fellBack: boolean;
}

export class Plan {
  readonly #targets: readonly PlanTarget[];
  readonly #lastStarts: number | readonly number[];
  readonly #reserves: readonly number[];
  readonly #random: () => number;
  readonly #rejected: Rejection[] = [];
  /** Indexes, each once. Made anew, since an array that is pushed to has room for 16 more. */
  #tried: readonly number[] = [];
  #state: PlanState = { phase: "ready" };

  /**
   * @param targets at least one, in the order to be tried
   * @param lastStart on the clock of the inputs: nothing begins then or later; Infinity: no such time. A list: for each
   * target its own
   * @param random in [0, 1), for the jitter
   * @param reserves for each target how long before its last start a retry leaves the time to the next target
   */
  constructor(
    targets: readonly PlanTarget[],
    lastStart: number | readonly number[],
    random: () => number,
    reserves: readonly number[] = [],
  ) {
    this.#targets = targets;
    this.#lastStarts = lastStart;
    this.#reserves = reserves;
    this.#random = random;
  }

  step(input: PlanInput): PlanOutput {
    const state = this.#state;
    switch (input.type) {
      case "start":
        if (state.phase !== "ready") throw new Error("a plan starts once");
        // Whatever the time is: without a first attempt there would be no failure to answer with.
        return this.#attempt(this.#next(-Infinity, input.backAt) ?? 0, 0);
      case "waited":
        if (state.phase !== "waiting") throw new Error("the plan is not waiting");
        // A timer may be late.
        return input.now >= this.#lastStart(state.target) ? this.#giveUp() : this.#attempt(state.target, state.retries);
      case "rejected":
        if (state.phase !== "attempting") throw new Error("the plan has no attempt under way");
        return this.#rejectedAt(state.target, state.retries, input);
    }
  }

  #attempt(target: number, retries: number): PlanOutput {
    this.#state = { phase: "attempting", target, retries };
    if (!this.#tried.includes(target)) this.#tried = [...this.#tried, target];
    return {
      type: "attempt",
      target,
      retry: retries > 0,
      anotherTarget: this.#next(-Infinity, undefined) !== undefined,
    };
  }

  #rejectedAt(index: number, retries: number, { failure, now, backAt }: PlanInput & { type: "rejected" }): PlanOutput {
    this.#rejected.push({ failure, fellBack: this.#tried.length > 1 });
    if (final.has(failure.kind) && failure.alwaysFallBack !== true) return this.#giveUp();
    const target = this.#targets[index] as PlanTarget;
    const next = this.#next(now, backAt);
    const delay = this.#retryDelay(target, retries, failure, next !== undefined);
    const reserve = next === undefined ? 0 : (this.#reserves[index] ?? 0);
    if (delay !== undefined && now + delay < this.#lastStart(index) - reserve) {
      if (delay === 0) return this.#attempt(index, retries + 1);
      this.#state = { phase: "waiting", target: index, retries: retries + 1 };
      return { type: "wait", until: now + delay };
    }
    return next !== undefined && fallsBack(target, failure) ? this.#attempt(next, 0) : this.#giveUp();
  }

  /** The next target to be tried: the first that does not rest, else the one that is back soonest. */
  #next(now: number, backAt: BackAt | undefined): number | undefined {
    let soonest: number | undefined;
    for (let index = 0; index < this.#targets.length; index += 1) {
      const target = this.#targets[index] as PlanTarget;
      if (this.#tried.includes(index) || now >= this.#lastStart(index)) continue;
      // The first in the order is asked for, not fallen back to; once another was tried, it would be.
      if (!target.fallbackCandidate && (index > 0 || this.#tried.length > 0)) continue;
      const back = backAt?.[index] ?? 0;
      if (back === 0) return index;
      if (soonest === undefined || back < (backAt?.[soonest] ?? 0)) soonest = index;
    }
    return soonest;
  }

  #lastStart(target: number): number {
    return typeof this.#lastStarts === "number" ? this.#lastStarts : (this.#lastStarts[target] ?? Infinity);
  }

  /** In ms; undefined: no retry. */
  #retryDelay(target: PlanTarget, retries: number, failure: Failure, another: boolean): number | undefined {
    const budget = target.retry.attempts ?? (another ? 0 : lastTargetRetries);
    if (retries >= budget || failure.alwaysFallBack === true || failure.shouldNotRetry === true || !failure.retryable)
      return undefined;
    if (!isNetwork(failure) && !matchesStatus(target.retry.onStatusCodes, failure)) return undefined;
    const { retryAfterMs } = failure;
    if (retryAfterMs !== undefined) return retryAfterMs > target.retry.maxDelayMs ? undefined : retryAfterMs;
    // Full jitter: https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
    return this.#random() * Math.min(target.retry.maxDelayMs, target.retry.delayMs * 2 ** retries);
  }

  #giveUp(): PlanOutput {
    this.#state = { phase: "over" };
    const rejection = answeredRejection(this.#rejected);
    const { failure } = this.#rejected[rejection] as Rejection;
    const delays = this.#rejected.map((entry) => entry.failure.retryAfterMs).filter((delay) => delay !== undefined);
    const delayed = (failure.status === 429 || failure.status === 503) && delays.length > 0;
    return {
      type: "give-up",
      failure: delayed ? { ...failure, retryAfterMs: Math.min(...delays) } : failure,
      rejection,
    };
  }
}

function fallsBack(target: PlanTarget, failure: Failure): boolean {
  return failure.alwaysFallBack === true || isNetwork(failure) || matchesStatus(target.fallbackStatusCodes, failure);
}

function isNetwork(failure: Failure): boolean {
  return failure.kind === "network" || failure.kind === "connect-timeout";
}

/** Whether the failure's status stands in the list; a 503 that was a 529 matches either. */
function matchesStatus(codes: readonly StatusCode[], { status, originalStatus }: Failure): boolean {
  return matchStatus(codes, status) || (originalStatus !== undefined && matchStatus(codes, originalStatus));
}

/**
 * The last failure, but for one that a target's own limits may explain (a smaller context, a missing model): that one does
 * not hide an earlier failure after which the client may try again.
 */
function answeredRejection(rejected: readonly Rejection[]): number {
  const last = rejected.length - 1;
  const entry = rejected[last] as Rejection;
  if (!entry.fellBack || !hiding.has(entry.failure.status)) return last;
  const earlier = rejected.findLastIndex(({ failure }) => failure.retryable);
  return earlier === -1 ? last : earlier;
}
