/** Tells the observers of one request. An observer that throws or rejects is none of the request's business. */

import type { Observer, ObserverEvent } from "./observer.js";

export function notify(observers: readonly Observer[], event: ObserverEvent): void {
  for (const observer of observers) {
    try {
      const result: unknown = observer.onEvent(event);
      if (result instanceof Promise) result.catch(() => undefined);
    } catch {
      // Observing must not fail what is observed.
    }
  }
}

/** The facts that every event of an attempt carries. */
export interface RecordedAttempt {
  readonly attempt: number;
  readonly target: string;
  readonly provider: string;
  readonly model: string;
}

/** Makes the events of one request. Does nothing where nobody observes. */
export class Recorder {
  readonly #observers: readonly Observer[];
  readonly requestId: string;

  constructor(observers: readonly Observer[], requestId: string) {
    this.#observers = observers;
    this.requestId = requestId;
  }

  /** A recorder of the same request, with one more that listens, after the others. */
  with(onEvent: (event: ObserverEvent) => void): Recorder {
    return new Recorder([...this.#observers, { onEvent }], this.requestId);
  }

  /** Whether anybody listens: else building events can be saved. */
  get active(): boolean {
    return this.#observers.length > 0;
  }

  record(event: DistributiveOmit<ObserverEvent, "requestId" | "at">): void {
    if (this.#observers.length === 0) return;
    notify(this.#observers, { ...event, requestId: this.requestId, at: Date.now() } as ObserverEvent);
  }
}

type DistributiveOmit<T, Keys extends PropertyKey> = T extends unknown ? Omit<T, Keys> : never;
