/** The metrics by name, with their labels and buckets. */

import { Counter, Gauge, Histogram, type Registry } from "prom-client";

export interface MetricsOptions {
  readonly register: Registry;
  readonly prefix: string;
  /** Label names for metadata. */
  readonly metadata: readonly string[];
}

/** From a cached prompt on a fast provider to reasoning models, which take minutes. In s. */
const ttftBuckets = [0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3, 5, 7.5, 10, 15, 20, 30, 60, 120, 300];
/** Mostly a frame or two, at worst `gate.maxHoldMs` or a TTFT timeout. In s. */
const holdBuckets = [0.001, 0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120];
const overheadBuckets = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1];
const durationBuckets = [0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1800];
/** From 1000 tokens a second to one. In s. */
const tokenBuckets = [0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1];
/** Up to the default of `gate.maxHeldBytes`. */
const heldBuckets = [256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304];

const target = ["protocol", "provider", "target"] as const;
const failure = ["protocol", "provider", "target", "kind", "code", "status"] as const;

/** All of them. */
export interface Metrics {
  readonly requests: Counter;
  readonly requestDuration: Histogram<"protocol" | "outcome">;
  readonly overhead: Histogram<"protocol">;
  readonly openRequests: Gauge;
  readonly openStreams: Gauge;
  readonly rescued: Counter<"protocol" | "model" | "target">;
  readonly clientAborts: Counter<"protocol" | "phase" | "kind">;
  readonly attempts: Counter<(typeof target)[number] | "outcome" | "status">;
  readonly attemptFailures: Counter<(typeof failure)[number]>;
  readonly streamFailures: Counter<(typeof failure)[number]>;
  readonly retries: Counter<(typeof target)[number]>;
  readonly fallbacks: Counter<(typeof target)[number]>;
  readonly emptyCompletions: Counter<(typeof target)[number] | "action">;
  readonly overflows: Counter<(typeof target)[number] | "limit" | "action">;
  readonly cooldowns: Counter<"provider" | "target">;
  readonly ttft: Histogram<(typeof target)[number]>;
  readonly hold: Histogram<(typeof target)[number]>;
  readonly heldBytes: Histogram<"protocol">;
  readonly streamDuration: Histogram<(typeof target)[number]>;
  readonly timePerToken: Histogram<(typeof target)[number]>;
  readonly tokens: Counter;
}

/** Makes metrics of one registry and prefix. */
class Maker {
  readonly #options: MetricsOptions;

  constructor(options: MetricsOptions) {
    this.#options = options;
  }

  counter<L extends string>(name: string, help: string, labelNames: readonly L[]): Counter<L> {
    return new Counter({ ...this.#common(name, help), labelNames });
  }

  gauge(name: string, help: string): Gauge {
    return new Gauge(this.#common(name, help));
  }

  histogram<L extends string>(name: string, help: string, labelNames: readonly L[], buckets: number[]): Histogram<L> {
    return new Histogram({ ...this.#common(name, help), labelNames, buckets });
  }

  #common(name: string, help: string): { name: string; help: string; registers: Registry[] } {
    return { name: this.#options.prefix + name, help, registers: [this.#options.register] };
  }
}

export function createMetrics(options: MetricsOptions): Metrics {
  const make = new Maker(options);
  return {
    ...ofRequests(make, options.metadata),
    ...ofAttempts(make),
    ...ofTimes(make),
    ...ofGate(make, options.metadata),
  };
}

function ofRequests(make: Maker, metadata: readonly string[]) {
  const labels = ["protocol", "model", "target", "outcome", "status", ...metadata];
  return {
    requests: make.counter<string>("requests_total", "Requests, as the client saw them end", labels),
    openRequests: make.gauge("open_requests", "Requests being served"),
    openStreams: make.gauge("open_streams", "Released answers being passed on"),
    rescued: make.counter("rescued_requests_total", "Requests that succeeded after a failed attempt", [
      "protocol",
      "model",
      "target",
    ]),
    clientAborts: make.counter("client_aborts_total", "Requests whose client left or took no bytes", [
      "protocol",
      "phase",
      "kind",
    ]),
  };
}

function ofAttempts(make: Maker) {
  return {
    attempts: make.counter("attempts_total", "Attempts at a target that ended", [...target, "outcome", "status"]),
    attemptFailures: make.counter(
      "attempt_failures_total",
      "Attempts that failed before anything was sent to the client",
      failure,
    ),
    streamFailures: make.counter("stream_failures_total", "Streams that failed after release", failure),
    retries: make.counter("retries_total", "Attempts at the same target again", target),
    fallbacks: make.counter("fallbacks_total", "Attempts at the next target, by the target fallen back to", target),
    cooldowns: make.counter("cooldowns_total", "Rests of a target", ["provider", "target"]),
  };
}

function ofTimes(make: Maker) {
  return {
    requestDuration: make.histogram(
      "request_duration_seconds",
      "Request to the end of the answer",
      ["protocol", "outcome"],
      durationBuckets,
    ),
    overhead: make.histogram(
      "gateway_overhead_seconds",
      "Spent in the gateway until the answer began, without attempts and waits",
      ["protocol"],
      overheadBuckets,
    ),
    ttft: make.histogram("ttft_seconds", "Start of the attempt to the first output", target, ttftBuckets),
    hold: make.histogram("hold_seconds", "First held byte to release", target, holdBuckets),
    streamDuration: make.histogram(
      "stream_duration_seconds",
      "Start of the attempt to the end of its stream",
      target,
      durationBuckets,
    ),
    timePerToken: make.histogram(
      "time_per_output_token_seconds",
      "First output to the end, by output token",
      target,
      tokenBuckets,
    ),
  };
}

function ofGate(make: Maker, metadata: readonly string[]) {
  const tokens = "Tokens as providers reported them; cached, cache_write and reasoning are parts of input and output";
  return {
    heldBytes: make.histogram("held_bytes", "Bytes held until release", ["protocol"], heldBuckets),
    emptyCompletions: make.counter("empty_completions_total", "Answers that were complete and without output", [
      ...target,
      "action",
    ]),
    overflows: make.counter("gate_overflows_total", "Streams that reached a limit of the gate before output", [
      ...target,
      "limit",
      "action",
    ]),
    tokens: make.counter<string>("tokens_total", tokens, [...target, "type", "outcome", ...metadata]),
  };
}

/** 1 while a target rests. Read when scraped: a rest ends without an event. */
export function restingGauge(
  { register, prefix }: MetricsOptions,
  rests: ReadonlyMap<string, Rest>,
): Gauge<"provider" | "target"> {
  return new Gauge({
    name: `${prefix}target_resting`,
    help: "Whether the target rests (1) or is tried in its place (0)",
    labelNames: ["provider", "target"],
    registers: [register],
    collect(): void {
      for (const { provider, target: name, until } of rests.values())
        this.set({ provider, target: name }, Date.now() < until ? 1 : 0);
    },
  });
}

export interface Rest {
  readonly provider: string;
  readonly target: string;
  /** Epoch ms. */
  readonly until: number;
}
