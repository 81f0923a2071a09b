/**
 * Cooldown of one target: when it rests, and how it comes back.
 *
 * | standing  | a request asks                        | counted failure                      | success   |
 * | --------- | ------------------------------------- | ------------------------------------ | --------- |
 * | available | tried in its place                    | counted; at the limits: resting      | –         |
 * | resting   | last, the soonest back first          | still resting; `Retry-After` extends | available |
 * | due       | the first one probes it, in its place | resting, twice as long               | available |
 * | probing   | last                                  | resting, twice as long               | available |
 *
 * Pure: asked with `now` in epoch ms. The rest itself lives in the store, where another process may set or end it; what
 * is kept here follows it. An attempt that began before the latest rest or recovery changes nothing any more: of 200 that
 * fail together one sets the rest, and none doubles it.
 *
 * Attempts are counted when they begin. Failures are quicker than successes: counted when they end, the first failures of
 * a busy target would stand alone, and a target that serves 95 % of its requests would rest.
 */

import type { HealthStore, Rest } from "./store.js";
import { RollingWindow } from "./window.js";

export interface CooldownPolicy {
  readonly failures: number;
  readonly failureRatio: number;
  readonly windowMs: number;
  readonly durationMs: number;
  readonly maxDurationMs: number;
}

export type Standing = "available" | "resting" | "due" | "probing";

/** Handed out when an attempt begins, handed back with its outcome. */
export interface AttemptToken {
  /** Of the latest rest or recovery that it knows. */
  epoch: number;
}

/** What an outcome changed, for the records. */
export type CooldownChange = { readonly type: "rest"; readonly rest: Rest } | { readonly type: "recovery" };

export class Cooldown {
  readonly #target: string;
  readonly #policy: CooldownPolicy;
  readonly #store: HealthStore;
  readonly #attempts: RollingWindow;
  /** Counted failures since the last recovery. */
  readonly #failures: RollingWindow;
  /** `until` of the rest that was seen last; 0: none. */
  #seen = 0;
  #epoch = 0;
  #probe: AttemptToken | undefined;

  constructor(target: string, policy: CooldownPolicy, store: HealthStore) {
    this.#target = target;
    this.#policy = policy;
    this.#store = store;
    this.#attempts = new RollingWindow(policy.windowMs, 1);
    this.#failures = new RollingWindow(policy.windowMs, 1);
  }

  standing(now: number): Standing {
    return this.#standing(this.#follow(), now);
  }

  /** When a target that may not be tried in its place is back, in epoch ms; 0: it may be tried. */
  backAt(now: number): number {
    const rest = this.#follow();
    const standing = this.#standing(rest, now);
    if (standing === "available" || standing === "due") return 0;
    return rest?.until ?? 0;
  }

  /** An attempt begins. The first one after a rest is the probe. */
  begin(now: number): AttemptToken {
    const due = this.standing(now) === "due";
    const token: AttemptToken = { epoch: this.#epoch };
    if (due) this.#probe = token;
    this.#attempts.add(now, [1]);
    return token;
  }

  /** The attempt was released. */
  succeed(token: AttemptToken): CooldownChange | undefined {
    const rest = this.#end(token);
    if (rest === undefined || token.epoch !== this.#epoch) return undefined;
    this.#store.setRest(this.#target, undefined);
    this.#follow();
    // Its stream may still break, and that counts.
    token.epoch = this.#epoch;
    return { type: "recovery" };
  }

  /**
   * A failure that counts, before release or after it.
   *
   * @param retryAfterMs what the provider asked for on a 429 or 503
   */
  fail(token: AttemptToken, now: number, retryAfterMs: number | undefined): CooldownChange | undefined {
    const rest = this.#end(token);
    if (token.epoch !== this.#epoch) return undefined;
    if (rest === undefined) return this.#count(now, retryAfterMs);
    if (now >= rest.until) return this.#rest(now, rest.streak + 1, retryAfterMs);
    // Whoever tried it during its rest had no other target. Its failure says nothing new, but for a longer delay.
    const until = now + Math.min(retryAfterMs ?? 0, this.#policy.maxDurationMs);
    return until > rest.until ? this.#rest(now, rest.streak, retryAfterMs) : undefined;
  }

  /** The attempt ended without a word on the target's health: the client left, a TTFT timeout, the request's own fault. */
  abandon(token: AttemptToken): void {
    this.#end(token);
  }

  #standing(rest: Rest | undefined, now: number): Standing {
    if (rest === undefined) return "available";
    if (now < rest.until) return "resting";
    return this.#probe === undefined ? "due" : "probing";
  }

  #count(now: number, retryAfterMs: number | undefined): CooldownChange | undefined {
    this.#failures.add(now, [1]);
    const [failures = 0] = this.#failures.sums(now);
    const [attempts = 0] = this.#attempts.sums(now);
    const { failures: limit, failureRatio } = this.#policy;
    if (failures < limit || failures < failureRatio * attempts) return undefined;
    return this.#rest(now, 1, retryAfterMs);
  }

  #rest(now: number, streak: number, retryAfterMs: number | undefined): CooldownChange {
    const { durationMs, maxDurationMs } = this.#policy;
    const length = Math.min(retryAfterMs ?? durationMs * 2 ** (streak - 1), maxDurationMs);
    const rest: Rest = { until: now + length, streak };
    this.#store.setRest(this.#target, rest);
    this.#follow();
    return { type: "rest", rest };
  }

  #end(token: AttemptToken): Rest | undefined {
    if (this.#probe === token) this.#probe = undefined;
    return this.#follow();
  }

  /** Reads the store. What began before the latest change says nothing about what follows. */
  #follow(): Rest | undefined {
    const rest = this.#store.rest(this.#target);
    const until = rest?.until ?? 0;
    if (until === this.#seen) return rest;
    this.#seen = until;
    this.#epoch += 1;
    this.#probe = undefined;
    if (rest === undefined) this.#failures.clear();
    return rest;
  }
}
