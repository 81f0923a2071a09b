/** Tells the observers of one request. An observer that throws or rejects is none of the request's business. */

import type { Failure } from "../errors.js";
import { anySubscriber, channels } from "./channels.js";
import type { ConfiguredNames } from "./configured-names.js";
import { observedFailure } from "./observed-failure.js";
import type { AttemptFacts, ObservedFailure, Observer, ObserverEvent, RequestFacts, TraceHeaders } from "./observer.js";

function notify(observers: readonly Observer[], event: ObserverEvent): void {
  for (const observer of observers) {
    try {
      const result: unknown = observer.onEvent(event);
      if (isThenable(result)) result.then(undefined, () => undefined);
    } catch {
      // Observing must not fail what is observed.
    }
  }
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return isObject(value) && typeof (value as { then?: unknown }).then === "function";
}

/** An event as it is recorded: the facts of the request and the time are added here, and a failure loses its wording. */
export type RecordedEvent = Recorded<ObserverEvent>;
type Recorded<T> = T extends { readonly failure?: unknown }
  ? Omit<T, keyof RequestFacts | "failure"> & FailureOf<T>
  : Omit<T, keyof RequestFacts>;
type FailureOf<T> = undefined extends T[keyof T & "failure"]
  ? { readonly failure: Failure | undefined }
  : { readonly failure: Failure };

/** Which attempt an event is of. */
export type RecordedAttempt = Omit<AttemptFacts, keyof RequestFacts>;

export interface RecorderParts {
  readonly observers: readonly Observer[];
  readonly facts: Omit<RequestFacts, "at">;
  readonly names: ConfiguredNames;
  /** Takes the bugs that were told. */
  readonly bugs: WeakSet<object>;
}

/** Makes the events of one request. Builds none where nobody observes. */
export class Recorder {
  readonly #parts: RecorderParts;

  constructor(parts: RecorderParts) {
    this.#parts = parts;
  }

  get requestId(): string {
    return this.#parts.facts.requestId;
  }

  /** Whether anybody observes: else work that only observers need can be saved. */
  get active(): boolean {
    return this.#parts.observers.length > 0 || anySubscriber();
  }

  /** @param event made for this call: it becomes what observers are told */
  record(event: RecordedEvent): void {
    const { observers, facts, bugs } = this.#parts;
    const channel = channels[event.type];
    const failure = "failure" in event ? event.failure : undefined;
    if (event.type === "request-end" && failure?.kind === "internal" && isObject(failure.cause))
      bugs.add(failure.cause);
    if (observers.length > 0 || channel.hasSubscribers) {
      // Into the caller's object: a spread of two of this size costs several times as much.
      const told = Object.assign(event, facts, { at: Date.now() }) as RecordedEvent & {
        failure?: Failure | ObservedFailure | undefined;
      };
      if (failure !== undefined) told.failure = observedFailure(failure);
      notify(observers, told as ObserverEvent);
      if (channel.hasSubscribers) channel.publish(told);
    }
  }

  /** The facts that every event of an attempt carries. */
  attempt(attempt: number, target: string, provider: string, model: string): RecordedAttempt {
    return { attempt, target, provider, model, targetConfigured: this.isConfigured(target) };
  }

  /** Whether a target, `provider/model`, stands in the configuration by its name. */
  isConfigured(target: string): boolean {
    return this.#parts.names.targets.has(target);
  }

  /** The trace context to send with an attempt, where an observer gives a valid one. */
  traceHeaders(attempt: number): TraceHeaders | undefined {
    for (const observer of this.#parts.observers) {
      try {
        const trace = observer.traceHeaders?.({ requestId: this.requestId, attempt });
        if (trace !== undefined && isTraceContext(trace)) return trace;
      } catch {
        // As for events.
      }
    }
    return undefined;
  }
}

function isTraceContext({ traceparent, tracestate }: TraceHeaders): boolean {
  return (
    /^[\da-f]{2}-[\da-f]{32}-[\da-f]{16}-[\da-f]{2}$/.test(traceparent) &&
    (tracestate === undefined || /^[\x20-\x7e]*$/.test(tracestate))
  );
}
