/** Tells the observers of one request. An observer that throws or rejects is none of the request's business. */

import type { Failure } from "../errors.js";
import { anySubscriber, channels } from "./channels.js";
import type { ConfiguredNames } from "./configured-names.js";
import { observedFailure } from "./observed-failure.js";
import type { ProtocolName } from "../gate/protocols/protocol.js";
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

/** What all requests of a gateway share. */
export interface RecorderParts {
  readonly observers: readonly Observer[];
  readonly names: ConfiguredNames;
  /** Takes the bugs that were told. */
  readonly bugs: WeakSet<object>;
}

/** A request that was accepted. */
export interface AcceptedRequest {
  readonly requestId: string;
  readonly protocol: ProtocolName;
  readonly streaming: boolean;
  readonly requestedModel: string;
  readonly rule: string | undefined;
  readonly subject: string | undefined;
  readonly metadata: Readonly<Record<string, string>> | undefined;
}

/** Makes the events of one request. */
export class Recorder {
  readonly #parts: RecorderParts;
  readonly #request: AcceptedRequest;
  readonly #modelConfigured: boolean;

  constructor(parts: RecorderParts, request: AcceptedRequest, modelConfigured: boolean) {
    this.#parts = parts;
    this.#request = request;
    this.#modelConfigured = modelConfigured;
  }

  /** Whether anybody observes: else work that only observers need can be saved. */
  get active(): boolean {
    return this.#parts.observers.length > 0 || anySubscriber();
  }

  /** Whether anybody would hear of an event. Asked first where events are many: nearly all are told to nobody. */
  hears(type: ObserverEvent["type"]): boolean {
    return this.#parts.observers.length > 0 || channels[type].hasSubscribers;
  }

  /** @param event made for this call: it becomes what observers are told */
  record(event: RecordedEvent): void {
    const failure = "failure" in event ? event.failure : undefined;
    if (event.type === "request-end" && failure !== undefined) this.noteBug(failure);
    if (!this.hears(event.type)) return;
    const facts = { modelConfigured: this.#modelConfigured, at: Date.now() };
    // Into the caller's object: a spread of two of this size costs several times as much.
    const told = Object.assign(event, this.#request, facts) as RecordedEvent & {
      failure?: Failure | ObservedFailure | undefined;
    };
    if (failure !== undefined) told.failure = observedFailure(failure);
    notify(this.#parts.observers, told as ObserverEvent);
    const channel = channels[event.type];
    if (channel.hasSubscribers) channel.publish(told);
  }

  /** A bug that ends a request is told once, whoever else gets to see it. */
  noteBug({ kind, cause }: Failure): void {
    if (kind === "internal" && isObject(cause)) this.#parts.bugs.add(cause);
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
        const trace = observer.traceHeaders?.({ requestId: this.#request.requestId, attempt });
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
