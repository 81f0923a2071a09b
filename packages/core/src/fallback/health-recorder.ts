/** What one attempt tells the health of its target: outcomes, how fast it was, and the cooldowns that follow. */

import type { Failure } from "../errors.js";
import type { CooldownChange } from "../health/cooldown.js";
import type { AttemptHealth } from "../health/health.js";
import type { TokenUsage } from "../gate/usage.js";
import type { RecordedAttempt, Recorder } from "../observability/recorder.js";

/**
 * Bytes per output token, where the provider does not report tokens. Guesses, the same for all targets: they matter only
 * where some targets of a model report tokens and others do not.
 */
const streamBytesPerToken = 160;
const jsonBytesPerToken = 6;

export interface HealthRecorderParts {
  readonly health: AttemptHealth;
  readonly recorder: Recorder;
  readonly attempt: RecordedAttempt;
  readonly streaming: boolean;
}

export interface AnswerEnd {
  readonly complete: boolean;
  readonly durationMs: number;
  readonly bytes: number;
  /** How long the client took nothing, in ms. */
  readonly pausedMs: number;
  readonly usage: TokenUsage | undefined;
}

export class HealthRecorder {
  readonly #parts: HealthRecorderParts;
  #ttftMs: number | undefined;
  #measured = false;

  constructor(parts: HealthRecorderParts) {
    this.#parts = parts;
  }

  /** @param reason why the gate released: only real output, or a whole answer, says how fast the target is */
  released(reason: string, ttftMs: number): void {
    const { streaming, health } = this.#parts;
    this.#measured = streaming ? reason === "output" : true;
    this.#ttftMs = streaming ? ttftMs : undefined;
    this.#record(health.released());
  }

  /** Before release or after it. */
  failed(failure: Failure): void {
    this.#measured = false;
    this.#record(this.#parts.health.failed(failure));
  }

  ended({ complete, durationMs, bytes, pausedMs, usage }: AnswerEnd): void {
    if (!complete || !this.#measured) return;
    const bytesPerToken = this.#parts.streaming ? streamBytesPerToken : jsonBytesPerToken;
    const ttftMs = this.#ttftMs;
    const outputMs = Math.max(0, durationMs - (ttftMs ?? 0) - pausedMs);
    this.#parts.health.measured({ ttftMs, outputMs, outputTokens: usage?.outputTokens ?? bytes / bytesPerToken });
  }

  /** It ended without an outcome. Harmless after one. */
  left(): void {
    this.#parts.health.left();
  }

  #record(change: CooldownChange | undefined): void {
    if (change === undefined) return;
    const { recorder, attempt } = this.#parts;
    if (change.type === "recovery") return recorder.record({ type: "cooldown-end", ...attempt });
    const { until, streak } = change.rest;
    recorder.record({ type: "cooldown-start", ...attempt, until: Math.round(until), streak });
  }
}
