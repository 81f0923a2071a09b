/** A gateway that every kind of observer watches at once. */

import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
} from "@opentelemetry/sdk-trace-base";
import { context } from "@opentelemetry/api";
import { Registry } from "prom-client";
import type { Logger } from "../../src/config.js";
import { openTelemetryObserver } from "../../src/observability/opentelemetry.js";
import { prometheusObserver, type PrometheusOptions } from "../../src/observability/prometheus.js";
import { stage, type Setup, type Stage } from "../fallback/serving.js";

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly facts: Record<string, unknown>;
}

export function recordingLogger(lines: LogLine[]): Logger {
  const at = (level: string) => (facts: object, message: string) =>
    void lines.push({ level, message, facts: facts as Record<string, unknown> });
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

export interface Watched extends Stage {
  readonly lines: LogLine[];
  readonly registry: Registry;
  readonly spans: () => readonly ReadableSpan[];
  /** Sum of a counter or gauge over the series that have these labels. */
  count(metric: string, labels?: Readonly<Record<string, string | number>>): Promise<number>;
}

export function tracing(): { provider: BasicTracerProvider; exporter: InMemorySpanExporter } {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  const exporter = new InMemorySpanExporter();
  return { provider: new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }), exporter };
}

export function watch(setup: Setup, options: PrometheusOptions = {}): Watched {
  const lines: LogLine[] = [];
  const registry = new Registry();
  const { provider, exporter } = tracing();
  const observers = [
    ...(setup.config?.observers ?? []),
    prometheusObserver({ register: registry, ...options }),
    openTelemetryObserver({ tracer: provider.getTracer("test"), meter: false }),
  ];
  const scene = stage({ ...setup, config: { ...setup.config, observers, logger: recordingLogger(lines) } });
  // Of the configuration: one target is not enough to fall back.
  lines.length = 0;
  const count: Watched["count"] = async (metric, labels = {}) => {
    const { values } = await registry.getSingleMetric(`first_chunk_${metric}`)!.get();
    return values
      .filter((sample) => Object.entries(labels).every(([name, value]) => sample.labels[name] === value))
      .reduce((sum, { value }) => sum + value, 0);
  };
  return { ...scene, lines, registry, spans: () => exporter.getFinishedSpans(), count };
}
