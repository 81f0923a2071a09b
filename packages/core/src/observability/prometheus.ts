/**
 * Metrics through `prom-client`, an optional peer. Import from `@first-chunk/core/prometheus`.
 *
 * Label values are bounded. Names of the configuration are always told; models and targets that clients name themselves
 * get a place once one of them was answered, as long as there is one; codes get one as they come. What has none is `other`.
 */

import { register as defaultRegister, type Registry } from "prom-client";
import { LabelValues, otherLabel } from "./label-values.js";
import type {
  AttemptFacts,
  ClientAbortEvent,
  ObservedFailure,
  Observer,
  ObserverEvent,
  ReleaseEvent,
  RequestEndEvent,
  RequestFacts,
  StreamEndEvent,
  TokenUsage,
} from "./observer.js";
import { createMetrics, restingGauge, type Metrics, type Rest } from "./prometheus-metrics.js";

export interface PrometheusOptions {
  /** Default: prom-client's global registry. A registry takes one observer per prefix. */
  readonly register?: Registry;
  /** Default: `first_chunk_`. */
  readonly prefix?: string;
  /**
   * Metadata keys that become labels `metadata_<key>` of `requests_total` and `tokens_total`. Each multiplies the time
   * series. Default: none.
   */
  readonly metadataLabels?: readonly string[];
  /** Distinct values of a label that clients or providers choose, 1 or more. Default: 100. */
  readonly maxLabelValues?: number;
}

export interface PrometheusObserver extends Observer {
  /** Where the metrics are: hand it to `metricsHandler`. */
  readonly register: Registry;
}

/**
 * Put it into `observers` of the configuration. Shared by several gateways, it counts them together.
 *
 * @throws Error of prom-client where the registry holds a metric of that name already; TypeError for an option out of range
 */
export function prometheusObserver(options: PrometheusOptions = {}): PrometheusObserver {
  return new MetricsObserver(options);
}

type TargetLabels = Record<"protocol" | "provider" | "target", string>;
type AttemptOutcome = "success" | "failure" | "empty-completion" | "client-abort";

class MetricsObserver implements PrometheusObserver {
  readonly register: Registry;
  readonly #metrics: Metrics;
  readonly #metadata: readonly (readonly [key: string, label: string])[];
  readonly #metadataValues: readonly LabelValues[];
  readonly #models: LabelValues;
  readonly #targets: LabelValues;
  readonly #codes: LabelValues;
  readonly #rests = new Map<string, Rest>();

  constructor({
    register = defaultRegister,
    prefix = "first_chunk_",
    metadataLabels = [],
    maxLabelValues = 100,
  }: PrometheusOptions) {
    if (!Number.isSafeInteger(maxLabelValues) || maxLabelValues < 1)
      throw new TypeError("maxLabelValues: must be a whole number, 1 or more");
    this.register = register;
    this.#metadata = metadataLabels.map((key) => [key, `metadata_${key.replace(/\W/g, "_")}`]);
    this.#metadataValues = metadataLabels.map(() => new LabelValues(maxLabelValues));
    this.#models = new LabelValues(maxLabelValues);
    this.#targets = new LabelValues(maxLabelValues);
    this.#codes = new LabelValues(maxLabelValues);
    const metrics = { register, prefix, metadata: this.#metadata.map(([, label]) => label) };
    this.#metrics = createMetrics(metrics);
    restingGauge(metrics, this.#rests);
  }

  onEvent(event: ObserverEvent): void {
    const metrics = this.#metrics;
    switch (event.type) {
      case "request-start":
        return metrics.openRequests.inc();
      case "attempt-start":
        if (event.retry) metrics.retries.inc(this.#target(event));
        if (event.fallback) metrics.fallbacks.inc(this.#target(event));
        return;
      case "attempt-reject":
        return this.#rejected(event, event.failure, event.usage);
      case "release":
        return this.#released(event);
      case "gate-overflow":
        return metrics.overflows.inc({
          ...this.#target(event),
          limit: event.limit,
          action: event.released ? "released" : "rejected",
        });
      case "stream-end":
        return this.#ended(event);
      case "stream-fail":
        this.#attempt(event, event, "failure", event.failure.status, event.usage);
        return metrics.streamFailures.inc(this.#failure(event, event.failure));
      case "cooldown-start":
      case "cooldown-end":
        return this.#rest(event, event.type === "cooldown-start" ? event.until : 0);
      case "client-abort":
        return this.#left(event);
      case "request-end":
        return this.#end(event);
    }
  }

  #rejected(event: AttemptFacts, failure: ObservedFailure, usage: TokenUsage | undefined): void {
    const { kind, status } = failure;
    if (kind === "client-abort") return this.#attempt(event, event, "client-abort", status, usage);
    const empty = kind === "empty-completion";
    this.#attempt(event, event, empty ? "empty-completion" : "failure", status, usage);
    if (empty) this.#metrics.emptyCompletions.inc({ ...this.#target(event), action: "rejected" });
    // A request that cannot be sent on as it is says nothing of the target.
    else if (kind !== "bad-request") this.#metrics.attemptFailures.inc(this.#failure(event, failure));
  }

  #released(event: ReleaseEvent): void {
    const metrics = this.#metrics;
    if (!event.targetConfigured) this.#targets.admit(event.target);
    const labels = this.#target(event);
    metrics.openStreams.inc();
    if (event.reason === "empty") metrics.emptyCompletions.inc({ ...labels, action: "released" });
    if (event.reason === "ungated") return;
    metrics.hold.observe(labels, event.holdMs / 1000);
    metrics.heldBytes.observe({ protocol: event.protocol }, event.heldBytes);
    if (event.reason === "output") metrics.ttft.observe(labels, event.ttftMs / 1000);
  }

  #ended(event: StreamEndEvent): void {
    const { durationMs, ttftMs, usage, streaming } = event;
    const labels = this.#target(event);
    this.#attempt(event, event, "success", 200, usage);
    if (!streaming) return;
    this.#metrics.streamDuration.observe(labels, durationMs / 1000);
    const { outputTokens = 0 } = usage ?? {};
    if (outputTokens > 1) this.#metrics.timePerToken.observe(labels, (durationMs - ttftMs) / 1000 / (outputTokens - 1));
  }

  #left(event: ClientAbortEvent): void {
    const { protocol, phase, failure, attempt, usage } = event;
    this.#metrics.clientAborts.inc({ protocol, phase, kind: failure.kind });
    if (attempt !== undefined) this.#attempt(event, attempt, "client-abort", failure.status, usage);
  }

  #end(event: RequestEndEvent): void {
    const metrics = this.#metrics;
    const { protocol, outcome, status, durationMs, overheadMs, attempts, requestedModel } = event;
    metrics.openRequests.dec();
    if (event.released) metrics.openStreams.dec();
    if (outcome === "success" && !event.modelConfigured) this.#models.admit(requestedModel);
    const model = this.#model(event);
    const target =
      event.target === undefined
        ? ""
        : event.targetConfigured === true
          ? event.target
          : this.#targets.known(event.target);
    metrics.requests.inc({ protocol, model, target, outcome, status, ...this.#metadataOf(event) });
    metrics.requestDuration.observe({ protocol, outcome }, durationMs / 1000);
    if (overheadMs !== undefined) metrics.overhead.observe({ protocol }, overheadMs / 1000);
    if (outcome === "success" && attempts > 1) metrics.rescued.inc({ protocol, model, target });
  }

  #attempt(
    request: RequestFacts,
    attempt: Attempt,
    outcome: AttemptOutcome,
    status: number,
    usage: TokenUsage | undefined,
  ): void {
    const labels = this.#target({ ...attempt, protocol: request.protocol });
    this.#metrics.attempts.inc({ ...labels, outcome, status });
    if (usage === undefined) return;
    const more = { ...labels, outcome, ...this.#metadataOf(request) };
    for (const [field, type] of tokenTypes) {
      const count = usage[field];
      if (count !== undefined && count > 0) this.#metrics.tokens.inc({ ...more, type }, count);
    }
  }

  #rest(event: AttemptFacts, until: number): void {
    const { provider, target } = this.#target(event);
    this.#rests.set(`${provider}/${target}`, { provider, target, until });
    if (until > 0) this.#metrics.cooldowns.inc({ provider, target });
  }

  #target({ protocol, provider, target, targetConfigured }: Attempt & Pick<RequestFacts, "protocol">): TargetLabels {
    return { protocol, provider, target: targetConfigured ? target : this.#targets.known(target) };
  }

  #model({ requestedModel, modelConfigured }: RequestFacts): string {
    return modelConfigured || requestedModel === "unknown" ? requestedModel : this.#models.known(requestedModel);
  }

  #failure(
    event: AttemptFacts,
    { kind, code, status }: ObservedFailure,
  ): TargetLabels & Record<"kind" | "code", string> & { status: number } {
    return { ...this.#target(event), kind, code: this.#codes.admit(code), status };
  }

  #metadataOf({ metadata = {} }: RequestFacts): Record<string, string> {
    const labels = this.#metadata.map(([key, label], index): [string, string] => {
      const value = Object.hasOwn(metadata, key) ? metadata[key] : undefined;
      return [label, value === undefined ? "" : (this.#metadataValues[index]?.admit(value) ?? otherLabel)];
    });
    return Object.fromEntries(labels);
  }
}

type Attempt = Pick<AttemptFacts, "provider" | "target" | "targetConfigured">;

const tokenTypes: readonly (readonly [keyof TokenUsage, string])[] = [
  ["inputTokens", "input"],
  ["outputTokens", "output"],
  ["cachedTokens", "cached"],
  ["cacheWriteTokens", "cache_write"],
  ["reasoningTokens", "reasoning"],
];
