/** A store that keeps the promise of the interface, whatever the one it wraps does: a call that throws knows nothing. */

import type { HealthStore, Rest } from "./store.js";

export class GuardedHealthStore implements HealthStore {
  readonly #store: HealthStore;
  readonly #onError: (error: unknown) => void;
  readonly #failing = new Set<keyof HealthStore>();

  /** @param onError told what the store threw: by each method once, and again when it had worked in between */
  constructor(store: HealthStore, onError: (error: unknown) => void) {
    this.#store = store;
    this.#onError = onError;
  }

  rest(target: string): Rest | undefined {
    return this.#guard("rest", () => this.#store.rest(target));
  }

  setRest(target: string, rest: Rest | undefined): void {
    this.#guard("setRest", () => this.#store.setRest(target, rest));
  }

  holder(id: string): string | undefined {
    return this.#guard("holder", () => this.#store.holder(id));
  }

  setHolder(id: string, target: string): void {
    this.#guard("setHolder", () => this.#store.setHolder(id, target));
  }

  #guard<Value>(method: keyof HealthStore, call: () => Value): Value | undefined {
    try {
      const value = call();
      this.#failing.delete(method);
      return value;
    } catch (error) {
      if (!this.#failing.has(method)) this.#onError(error);
      this.#failing.add(method);
      return undefined;
    }
  }
}
