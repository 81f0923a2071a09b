/**
 * Where the state lives that more than one process may share. The default keeps it in memory.
 *
 * A store over a network answers from its own local copy and synchronises in the background: decisions never wait for it.
 * Every method returns at once and does not throw.
 */

import { LRUCache } from "lru-cache";

/** A target's rest. */
export interface Rest {
  /** Epoch ms. After it one request probes the target. */
  readonly until: number;
  /** Rests in a row, from 1: each is twice as long as the one before. */
  readonly streak: number;
}

export interface HealthStore {
  /** @param target `provider/model` */
  rest(target: string): Rest | undefined;
  /** `undefined`: the target has recovered. */
  setRest(target: string, rest: Rest | undefined): void;
  /** The target that issued a response or conversation id. */
  holder(id: string): string | undefined;
  setHolder(id: string, target: string): void;
}

/** Targets whose rest is remembered. Only patterns with `*` targets can have more. */
const maxTargets = 10_000;
/** Ids that are remembered, and for how long at most: OpenAI keeps responses for 30 days. */
const maxHolders = 100_000;
const holderTtlMs = 30 * 24 * 3_600_000;

export class MemoryHealthStore implements HealthStore {
  readonly #rests = new LRUCache<string, Rest>({ max: maxTargets });
  readonly #holders = new LRUCache<string, string>({ max: maxHolders, ttl: holderTtlMs });

  rest(target: string): Rest | undefined {
    return this.#rests.get(target);
  }

  setRest(target: string, rest: Rest | undefined): void {
    if (rest === undefined) this.#rests.delete(target);
    else this.#rests.set(target, rest);
  }

  holder(id: string): string | undefined {
    return this.#holders.get(id);
  }

  setHolder(id: string, target: string): void {
    this.#holders.set(id, target);
  }
}
