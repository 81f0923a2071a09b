/** A store that keeps the promise of the interface, whatever the one it wraps does: a call that throws knows nothing. */

import type { HealthStore, Rest } from "./store.js";

export class GuardedHealthStore implements HealthStore {
  readonly #store: HealthStore;
  readonly #onError: (error: unknown) => void;

  /** @param onError told what the store threw */
  constructor(store: HealthStore, onError: (error: unknown) => void) {
    this.#store = store;
    this.#onError = onError;
  }

  rest(target: string): Rest | undefined {
    return this.#guard(() => this.#store.rest(target));
  }

  setRest(target: string, rest: Rest | undefined): void {
    this.#guard(() => this.#store.setRest(target, rest));
  }

  holder(id: string): string | undefined {
    return this.#guard(() => this.#store.holder(id));
  }

  setHolder(id: string, target: string): void {
    this.#guard(() => this.#store.setHolder(id, target));
  }

  #guard<Value>(call: () => Value): Value | undefined {
    try {
      return call();
    } catch (error) {
      this.#onError(error);
      return undefined;
    }
  }
}
