/** What is known of the targets' health: one cooldown and one latency account each, keyed by `provider/model`. */

import { LRUCache } from "lru-cache";
import type { Clock } from "../clock.js";
import type { Failure } from "../errors.js";
import { countsTowardCooldown } from "../gate/failures.js";
import { Cooldown, type AttemptToken, type CooldownChange, type CooldownPolicy } from "./cooldown.js";
import { Latency, type LatencyMeans, type LatencySample } from "./latency.js";
import type { HealthStore } from "./store.js";

/** Targets of which an account is kept. Only patterns and `directModels` can bring more: the idle ones are forgotten. */
const maxTargets = 10_000;

interface Account {
  readonly cooldown: Cooldown | undefined;
  readonly latency: Latency;
}

export interface HealthOptions {
  /** False: no target ever rests. */
  readonly cooldown: CooldownPolicy | false;
  readonly store: HealthStore;
  readonly clock: Clock;
  /** Epoch ms minus the time of the clock. */
  readonly epochOffset: number;
  /** A route goes by latency: it is measured, and token usage is read also where nobody observes. */
  readonly measures: boolean;
}

export class Health {
  readonly #options: HealthOptions;
  readonly #accounts = new LRUCache<string, Account>({ max: maxTargets });

  constructor(options: HealthOptions) {
    this.#options = options;
  }

  get measures(): boolean {
    return this.#options.measures;
  }

  /** Epoch ms on a monotonic scale: what the store and the accounts count in. */
  now(): number {
    return this.#options.clock.now() + this.#options.epochOffset;
  }

  /** For each target: 0 where it may be tried in its place, else when it is back, in epoch ms. */
  backAt(targets: readonly string[]): number[] {
    if (this.#options.cooldown === false) return targets.map(() => 0);
    const now = this.now();
    return targets.map((target) => this.#account(target).cooldown?.backAt(now) ?? 0);
  }

  /** Requests that began at the target in the last 20 minutes. */
  begun(target: string): number {
    return this.#account(target).latency.begun(this.now());
  }

  /** The last 20 minutes. */
  latency(target: string): LatencyMeans {
    return this.#account(target).latency.long(this.now());
  }

  /** The last 3 minutes. */
  recentLatency(target: string): LatencyMeans {
    return this.#account(target).latency.short(this.now());
  }

  /** An attempt begins at the target. */
  begin(target: string): AttemptHealth {
    const account = this.#account(target);
    const now = this.now();
    if (this.#options.measures) account.latency.begin(now);
    return new AttemptHealth(this, account, account.cooldown?.begin(now));
  }

  #account(target: string): Account {
    let account = this.#accounts.get(target);
    if (account === undefined) {
      const { cooldown, store } = this.#options;
      account = {
        cooldown: cooldown === false ? undefined : new Cooldown(target, cooldown, store),
        latency: new Latency(),
      };
      this.#accounts.set(target, account);
    }
    return account;
  }
}

/** One attempt's entry in the accounts of its target. */
export class AttemptHealth {
  readonly #health: Health;
  readonly #account: Account;
  readonly #token: AttemptToken | undefined;

  constructor(health: Health, account: Account, token: AttemptToken | undefined) {
    this.#health = health;
    this.#account = account;
    this.#token = token;
  }

  released(): CooldownChange | undefined {
    return this.#token && this.#account.cooldown?.succeed(this.#token);
  }

  /** It failed, before release or after it. A failure that says nothing of the target's health changes nothing. */
  failed(failure: Failure): CooldownChange | undefined {
    const { cooldown } = this.#account;
    if (this.#token === undefined || cooldown === undefined) return undefined;
    if (!countsTowardCooldown(failure)) {
      cooldown.abandon(this.#token);
      return undefined;
    }
    const delayed = failure.status === 429 || failure.status === 503;
    return cooldown.fail(this.#token, this.#health.now(), delayed ? failure.retryAfterMs : undefined);
  }

  /** It ended without an outcome: the client left, or the gateway was closed. Harmless after an outcome. */
  left(): void {
    if (this.#token !== undefined) this.#account.cooldown?.abandon(this.#token);
  }

  /** The answer came to its end. */
  measured(sample: LatencySample): void {
    if (!this.#health.measures) return;
    this.#account.latency.add(this.#health.now(), sample);
  }
}
