/**
 * The client metrics of the conventions for generative AI, an attempt each.
 * https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-metrics.md
 */

import type { Attributes, Histogram, Meter } from "@opentelemetry/api";
import { LabelValues } from "./label-values.js";
import type { TokenUsage } from "./observer.js";

const seconds = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const tokens = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864];
/** Attributes that clients or providers choose. */
const chosen = ["gen_ai.request.model", "error.type"];
const maxValues = 200;

export class GenAiMetrics {
  readonly #duration: Histogram;
  readonly #firstOutput: Histogram;
  readonly #tokens: Histogram;
  readonly #values = new Map(chosen.map((name) => [name, new LabelValues(maxValues)]));

  constructor(meter: Meter) {
    this.#duration = meter.createHistogram("gen_ai.client.operation.duration", {
      unit: "s",
      description: "GenAI operation duration.",
      advice: { explicitBucketBoundaries: seconds },
    });
    this.#firstOutput = meter.createHistogram("gen_ai.client.operation.time_to_first_chunk", {
      unit: "s",
      description: "Start of the attempt to the first output.",
      advice: { explicitBucketBoundaries: seconds },
    });
    this.#tokens = meter.createHistogram("gen_ai.client.token.usage", {
      unit: "{token}",
      description: "Number of input and output tokens used.",
      advice: { explicitBucketBoundaries: tokens },
    });
  }

  firstOutput(ttftMs: number, attributes: Attributes): void {
    this.#firstOutput.record(ttftMs / 1000, this.#bounded(attributes));
  }

  /** @param durationMs undefined: not known, since the client left */
  ended(usage: TokenUsage | undefined, durationMs: number | undefined, attributes: Attributes): void {
    const bounded = this.#bounded(attributes);
    if (durationMs !== undefined) this.#duration.record(durationMs / 1000, bounded);
    const { inputTokens, outputTokens } = usage ?? {};
    if (inputTokens !== undefined) this.#tokens.record(inputTokens, { ...bounded, "gen_ai.token.type": "input" });
    if (outputTokens !== undefined) this.#tokens.record(outputTokens, { ...bounded, "gen_ai.token.type": "output" });
  }

  /** The target holds the model again, and is left to the spans. */
  #bounded(given: Attributes): Attributes {
    const attributes = { ...given, "first_chunk.target": undefined };
    for (const [name, values] of this.#values) {
      const value = given[name];
      if (typeof value === "string") Object.assign(attributes, { [name]: values.admit(value) });
    }
    return attributes;
  }
}
