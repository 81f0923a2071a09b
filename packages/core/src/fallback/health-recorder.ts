/** What one attempt tells the health of its target: outcomes, how fast it was, and the cooldowns that follow. */

import type { Failure } from "../errors.js";
import type { CooldownChange } from "../health/cooldown.js";
import type { AttemptHealth } from "../health/health.js";
import type { TokenUsage } from "../gate/usage.js";

/**
 * Bytes per output token, where the provider does not report tokens. Guesses, the same for all targets: they matter only
 * where some targets of a model report tokens and others do not.
 */
const streamBytesPerToken = 160;
const jsonBytesPerToken = 6;

/** Hears of what an outcome changed. */
export interface CooldownListener {
  onCooldown(change: CooldownChange): void;
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
  readonly #health: AttemptHealth;
  readonly #streaming: boolean;
  readonly #listener: CooldownListener;
  #ttftMs: number | undefined;
  #measured = false;

  constructor(health: AttemptHealth, streaming: boolean, listener: CooldownListener) {
    this.#health = health;
    this.#streaming = streaming;
    this.#listener = listener;
  }

  /** @param reason why the gate released: only real output, or a whole answer, says how fast the target is */
  released(reason: string, ttftMs: number): void {
    this.#measured = this.#streaming ? reason === "output" : true;
    this.#ttftMs = this.#streaming ? ttftMs : undefined;
    this.#tell(this.#health.released());
  }

  /** Before release or after it. */
  failed(failure: Failure): void {
    this.#measured = false;
    this.#tell(this.#health.failed(failure));
  }

  ended({ complete, durationMs, bytes, pausedMs, usage }: AnswerEnd): void {
    if (!complete || !this.#measured) return;
    const bytesPerToken = this.#streaming ? streamBytesPerToken : jsonBytesPerToken;
    const ttftMs = this.#ttftMs;
    const outputMs = Math.max(0, durationMs - (ttftMs ?? 0) - pausedMs);
    this.#health.measured({ ttftMs, outputMs, outputTokens: usage?.outputTokens ?? bytes / bytesPerToken });
  }

  /** It ended without an outcome. Harmless after one. */
  left(): void {
    this.#health.left();
  }

  #tell(change: CooldownChange | undefined): void {
    if (change !== undefined) this.#listener.onCooldown(change);
  }
}
