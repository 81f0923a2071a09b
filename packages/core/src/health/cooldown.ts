/**
 * Cooldown of one target: when it rests, and how it comes back.
 *
 * | standing  | request asks                       | counted failure                      | success   |
 * | --------- | ---------------------------------- | ------------------------------------ | --------- |
 * | available | tried in its place                 | counted; at the limits: resting      | counted   |
 * | resting   | last, the soonest back first       | still resting; `Retry-After` extends | available |
 * | due       | the first one probes it, in its place | (no attempt is under way)         | –         |
 * | probing   | last                               | resting, twice as long               | available |
 *
 * Pure: asked with `now` in epoch ms. An attempt that began before the latest rest or recovery changes nothing any more.
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
  readonly epoch: number;
  readonly probe: boolean;
}

/** What an outcome changed, for the records. */
export type CooldownChange = { readonly type: "rest"; readonly rest: Rest } | { readonly type: "recovery" };

export class Cooldown {
  readonly #target: string;
  readonly #policy: CooldownPolicy;
  readonly #store: HealthStore;
  /** Attempts and counted failures. */
  readonly #window: RollingWindow;
  #epoch = 0;
  #probing = false;

  constructor(target: string, policy: CooldownPolicy, store: HealthStore) {
    this.#target = target;
    this.#policy = policy;
    this.#store = store;
    this.#window = new RollingWindow(policy.windowMs, 2);
  }

  standing(now: number): Standing {
    const rest = this.#store.rest(this.#target);
    if (rest === undefined) return "available";
    if (now < rest.until) return "resting";
    return this.#probing ? "probing" : "due";
  }

  /** When a target that may not be tried in its place is back, in epoch ms; 0: it may be tried. */
  backAt(now: number): number {
    const standing = this.standing(now);
    if (standing === "available" || standing === "due") return 0;
    return standing === "probing" ? now : (this.#store.rest(this.#target)?.until ?? 0);
  }

  /** An attempt begins. The first one after a rest is the probe. */
  begin(now: number): AttemptToken {
    const probe = this.standing(now) === "due";
    if (probe) this.#probing = true;
    return { epoch: this.#epoch, probe };
  }

  succeed(token: AttemptToken, now: number): CooldownChange | undefined {
    this.#endProbe(token);
    if (token.epoch !== this.#epoch) return undefined;
    this.#window.add(now, [1, 0]);
    if (this.#store.rest(this.#target) === undefined) return undefined;
    this.#turn();
    this.#store.setRest(this.#target, undefined);
    return { type: "recovery" };
  }

  /**
   * @param retryAfterMs what the provider asked for on a 429 or 503
   * @param counted false: the attempt was counted as a success before (a stream that broke after release)
   */
  fail(token: AttemptToken, now: number, retryAfterMs: number | undefined, counted = true): CooldownChange | undefined {
    this.#endProbe(token);
    if (token.epoch !== this.#epoch) return undefined;
    const rest = this.#store.rest(this.#target);
    if (rest !== undefined) {
      // Whoever tried it during its rest had no other target. Its failure says nothing new, but for a longer delay.
      const until = now + Math.min(retryAfterMs ?? 0, this.#policy.maxDurationMs);
      if (now < rest.until && until <= rest.until) return undefined;
      return this.#rest(now, now < rest.until ? rest.streak : rest.streak + 1, retryAfterMs);
    }
    this.#window.add(now, [counted ? 1 : 0, 1]);
    const [attempts = 0, failures = 0] = this.#window.sums(now);
    const { failures: limit, failureRatio } = this.#policy;
    if (failures < limit || failures < failureRatio * attempts) return undefined;
    return this.#rest(now, 1, retryAfterMs);
  }

  /** The attempt ended without a word on the target's health: the client left, a TTFT timeout, the request's own fault. */
  abandon(token: AttemptToken): void {
    this.#endProbe(token);
  }

  #rest(now: number, streak: number, retryAfterMs: number | undefined): CooldownChange {
    const { durationMs, maxDurationMs } = this.#policy;
    const length = Math.min(retryAfterMs ?? durationMs * 2 ** (streak - 1), maxDurationMs);
    const rest: Rest = { until: now + length, streak };
    this.#turn();
    this.#store.setRest(this.#target, rest);
    return { type: "rest", rest };
  }

  /** What began before says nothing about what follows. */
  #turn(): void {
    this.#epoch += 1;
    this.#window.clear();
  }

  #endProbe(token: AttemptToken): void {
    if (token.probe) this.#probing = false;
  }
}
