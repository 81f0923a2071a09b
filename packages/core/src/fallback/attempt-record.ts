/** What is told of one attempt: to the observers, to the health of its target, and to the run that it is part of. */

import type { Failure } from "../errors.js";
import type { OverflowLimit } from "../gate/gate.js";
import type { TokenUsage } from "../gate/usage.js";
import type { RecordedAttempt, Recorder } from "../observability/recorder.js";
import type { RoutedTarget } from "../routing/resolve.js";
import type { AttemptObserver, AttemptRejected, AttemptReleased, StreamFacts } from "./attempt-spec.js";
import { HealthRecorder } from "./health-recorder.js";
import { redact } from "./redact.js";
import type { FallbackDeps, RunFacts } from "./run-facts.js";
import type { CutStream } from "./run-record.js";

/** The run, as its attempts see it. */
export interface AttemptRun {
  /** Its last event has been told. */
  readonly over: boolean;
  onRelease(routed: RoutedTarget, result: AttemptReleased): void;
  /** The body was handed over to its end, or the client left. */
  onBodyEnd(failed: Failure | undefined, left: Failure | undefined, cut: CutStream): void;
  onDropped(): void;
}

export class AttemptRecord implements AttemptObserver {
  readonly number: number;
  readonly routed: RoutedTarget;
  readonly #run: AttemptRun;
  readonly #recorder: Recorder;
  readonly #attempt: RecordedAttempt;
  readonly #health: HealthRecorder | undefined;
  /** What no answer may repeat. */
  #secrets: readonly string[] = [];
  #failed: Failure | undefined;
  #ended = false;
  #ttftMs = 0;

  /** The attempt counts for the target's health from here on. */
  constructor(run: AttemptRun, health: FallbackDeps["health"], facts: RunFacts, routed: RoutedTarget, number: number) {
    const { recorder, route, streaming } = facts;
    this.number = number;
    this.routed = routed;
    this.#run = run;
    this.#recorder = recorder;
    this.#attempt = recorder.attempt(number, routed.id, routed.target.provider.name, routed.model);
    if (route.probesHealth === false) return;
    this.#health = new HealthRecorder({ health: health.begin(routed.id), recorder, attempt: this.#attempt, streaming });
  }

  start(retry: boolean): void {
    const { type: providerType, origin } = this.routed.target.provider;
    const fallback = !retry && this.number > 1;
    this.#recorder.record({ type: "attempt-start", ...this.#attempt, retry, fallback, providerType, origin });
  }

  /** The request has been made. */
  keep(secrets: readonly string[]): void {
    this.#secrets = secrets;
  }

  /** The failure without what the request was authorized with. */
  clean(failure: Failure): Failure {
    return redact(failure, this.#secrets);
  }

  reject({ failure, durationMs, holdMs, usage }: AttemptRejected): void {
    this.#recorder.record({ type: "attempt-reject", ...this.#attempt, failure, durationMs, holdMs, usage });
    this.#health?.failed(failure);
  }

  /** It ended without an outcome: the client left. Harmless after one. */
  leave(): void {
    this.#health?.left();
  }

  // As the attempt's observer

  onOverflow(limit: OverflowLimit, heldBytes: number, released: boolean): void {
    this.#recorder.record({ type: "gate-overflow", ...this.#attempt, limit, heldBytes, released });
  }

  onRelease(result: AttemptReleased): void {
    const { status, ttftMs, holdMs, heldBytes, reason } = result;
    this.#ttftMs = ttftMs;
    this.#recorder.record({ type: "release", ...this.#attempt, status, ttftMs, holdMs, heldBytes, reason });
    this.#health?.released(reason, ttftMs);
    this.#run.onRelease(this.routed, result);
  }

  onStreamFail(reported: Failure, facts: StreamFacts): void {
    if (this.#run.over) return;
    const failure = this.clean(reported);
    this.#failed = failure;
    this.#recorder.record({ type: "stream-fail", ...this.#attempt, failure, ...facts });
    this.#health?.failed(failure);
  }

  onStreamEnd({ pausedMs, ...facts }: StreamFacts & { readonly complete: boolean; readonly pausedMs: number }): void {
    this.#ended = true;
    this.#health?.ended({ ...facts, pausedMs });
    if (this.#failed !== undefined || this.#run.over) return;
    this.#recorder.record({ type: "stream-end", ...this.#attempt, ttftMs: this.#ttftMs, ...facts });
  }

  onBodyEnd(left: Failure | undefined, usage: TokenUsage | undefined): void {
    this.#run.onBodyEnd(this.#failed, left, this.#ended ? {} : { attempt: this.#attempt, usage });
  }

  onDropped(): void {
    this.#run.onDropped();
  }
}
