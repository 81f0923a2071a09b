/**
 * Traces and metrics through `@opentelemetry/api`, an optional peer. Import from `@first-chunk/core/opentelemetry`.
 *
 * A span a request, below the host's own, and a client span an attempt below it, by the conventions for generative AI:
 * https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-spans.md
 */

import { context, metrics, SpanKind, SpanStatusCode, trace, isSpanContextValid } from "@opentelemetry/api";
import type { Attributes, Context, Meter, Span, Tracer } from "@opentelemetry/api";
import { GenAiMetrics } from "./gen-ai-metrics.js";
import {
  attemptAttributes,
  failureAttributes,
  operationOf,
  requestAttributes,
  usageAttributes,
} from "./gen-ai-attributes.js";
import type {
  ClientAbortEvent,
  ObservedAttemptStartEvent,
  ObservedFailure,
  Observer,
  ObserverEvent,
  ReleaseEvent,
  RequestEndEvent,
  RequestStartEvent,
  TokenUsage,
  TraceHeaders,
} from "./observer.js";

export interface OpenTelemetryOptions {
  /** Default: the global provider's, named `@first-chunk/core`. */
  readonly tracer?: Tracer;
  /** For the client metrics of the conventions. Default: the global provider's. `false`: none. */
  readonly meter?: Meter | false;
  /**
   * Whether providers are sent `traceparent` and `tracestate` of the attempt's span, in place of the client's. Turn it off
   * where an instrumentation of undici adds them. Default: true.
   */
  readonly propagate?: boolean;
}

const scope = "@first-chunk/core";

/** Put it into `observers` of the configuration. */
export function openTelemetryObserver(options: OpenTelemetryOptions = {}): Observer {
  return new TraceObserver(options);
}

interface OpenAttempt {
  readonly number: number;
  readonly span: Span;
  /** Of the attempt's metrics. */
  readonly attributes: Attributes;
}

interface OpenRequest {
  readonly span: Span;
  readonly context: Context;
  attempt: OpenAttempt | undefined;
}

class TraceObserver implements Observer {
  readonly #tracer: Tracer;
  readonly #metrics: GenAiMetrics | undefined;
  readonly #propagate: boolean;
  /** Every request has one end. */
  readonly #open = new Map<string, OpenRequest>();

  constructor({ tracer, meter, propagate = true }: OpenTelemetryOptions) {
    this.#tracer = tracer ?? trace.getTracer(scope);
    this.#metrics = meter === false ? undefined : new GenAiMetrics(meter ?? metrics.getMeter(scope));
    this.#propagate = propagate;
  }

  onEvent(event: ObserverEvent): void {
    if (event.type === "request-start") return this.#start(event);
    const request = this.#open.get(event.requestId);
    if (request === undefined) return;
    switch (event.type) {
      case "attempt-start":
        return this.#startAttempt(request, event);
      case "attempt-reject":
        hold(request.attempt, event);
        request.attempt?.span.addEvent("first_chunk.reject", failureAttributes(event.failure));
        return this.#endAttempt(request, event.failure, event.usage, event.durationMs);
      case "release":
        return this.#release(request, event);
      case "gate-overflow":
        request.attempt?.span.addEvent("first_chunk.overflow", {
          "first_chunk.limit": event.limit,
          "first_chunk.held_bytes": event.heldBytes,
        });
        return;
      case "stream-end":
      case "stream-fail":
        if (event.responseModel !== undefined)
          request.attempt?.span.setAttribute("gen_ai.response.model", event.responseModel);
        return this.#endAttempt(
          request,
          event.type === "stream-fail" ? event.failure : undefined,
          event.usage,
          event.durationMs,
        );
      case "cooldown-start":
        request.span.addEvent("first_chunk.cooldown_start", {
          "first_chunk.target": event.target,
          "first_chunk.until": new Date(event.until).toISOString(),
        });
        return;
      case "cooldown-end":
        request.span.addEvent("first_chunk.cooldown_end", { "first_chunk.target": event.target });
        return;
      case "client-abort":
        return this.#abort(request, event);
      case "request-end":
        return this.#end(request, event);
    }
  }

  traceHeaders({
    requestId,
    attempt,
  }: {
    readonly requestId: string;
    readonly attempt: number;
  }): TraceHeaders | undefined {
    const open = this.#open.get(requestId)?.attempt;
    if (!this.#propagate || open?.number !== attempt) return undefined;
    const { traceId, spanId, traceFlags, traceState } = open.span.spanContext();
    if (!isSpanContextValid({ traceId, spanId, traceFlags })) return undefined;
    const flags = (traceFlags & 0xff).toString(16).padStart(2, "0");
    const state = traceState?.serialize();
    return { traceparent: `00-${traceId}-${spanId}-${flags}`, tracestate: state === "" ? undefined : state };
  }

  /** In the caller's context: the host's own span, if it has one, is the parent. */
  #start(event: RequestStartEvent): void {
    const parent = context.active();
    const options = { kind: SpanKind.INTERNAL, attributes: requestAttributes(event) };
    const span = this.#tracer.startSpan(`first_chunk ${event.requestedModel}`, options, parent);
    this.#open.set(event.requestId, { span, context: trace.setSpan(parent, span), attempt: undefined });
  }

  #startAttempt(request: OpenRequest, event: ObservedAttemptStartEvent): void {
    const attributes = attemptAttributes(event);
    const options = { kind: SpanKind.CLIENT, attributes: { ...attributes, "first_chunk.attempt": event.attempt } };
    const span = this.#tracer.startSpan(`${operationOf(event.protocol)} ${event.model}`, options, request.context);
    request.attempt = { number: event.attempt, span, attributes };
  }

  #release({ attempt }: OpenRequest, event: ReleaseEvent): void {
    const { ttftMs, holdMs, heldBytes, reason } = event;
    hold(attempt, event);
    attempt?.span.addEvent("first_chunk.release", {
      "first_chunk.reason": reason,
      "first_chunk.hold_ms": holdMs,
      "first_chunk.held_bytes": heldBytes,
    });
    attempt?.span.setAttribute("http.response.status_code", event.status);
    if (reason !== "output" || attempt === undefined) return;
    attempt.span.setAttribute("gen_ai.response.time_to_first_chunk", ttftMs / 1000);
    this.#metrics?.firstOutput(ttftMs, attempt.attributes);
  }

  #endAttempt(
    request: OpenRequest,
    failure: ObservedFailure | undefined,
    usage: TokenUsage | undefined,
    durationMs: number | undefined,
  ): void {
    const { attempt } = request;
    if (attempt === undefined) return;
    request.attempt = undefined;
    const { span, attributes } = attempt;
    if (usage !== undefined) span.setAttributes(usageAttributes(usage));
    if (failure !== undefined) fail(span, failure);
    span.end();
    const more = failure === undefined ? attributes : { ...attributes, "error.type": failure.code };
    this.#metrics?.ended(usage, durationMs, more);
  }

  #abort(request: OpenRequest, { phase, failure, usage }: ClientAbortEvent): void {
    request.span.addEvent("first_chunk.client_abort", { "first_chunk.phase": phase, "first_chunk.kind": failure.kind });
    this.#endAttempt(request, failure, usage, undefined);
  }

  #end(request: OpenRequest, event: RequestEndEvent): void {
    const { requestId, status, outcome, attempts, target, failure } = event;
    this.#open.delete(requestId);
    this.#endAttempt(request, failure, undefined, undefined);
    const { span } = request;
    span.setAttributes({
      "first_chunk.outcome": outcome,
      "first_chunk.attempts": attempts,
      "first_chunk.status": status,
    });
    if (target !== undefined) span.setAttribute("first_chunk.target", target);
    if (failure !== undefined) fail(span, failure);
    span.end();
  }
}

/** Told afterwards: holding begins without an event. */
function hold(
  attempt: OpenAttempt | undefined,
  { at, holdMs }: { readonly at: number; readonly holdMs: number },
): void {
  if (holdMs > 0) attempt?.span.addEvent("first_chunk.hold", new Date(at - holdMs));
}

/** What a client did to itself is no error of the span: it stays unset. */
function fail(span: Span, failure: ObservedFailure): void {
  span.setAttributes(failureAttributes(failure));
  const { kind, code } = failure;
  if (kind === "client-abort" || kind === "write-stall" || kind === "bad-request") return;
  span.setStatus({ code: SpanStatusCode.ERROR, message: code });
}
