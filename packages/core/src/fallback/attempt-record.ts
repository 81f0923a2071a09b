/** What is told of one attempt: to the observers, to the health of its target, and to the run that it is part of. */

import type { Failure } from "../errors.js";
import type { OverflowLimit } from "../gate/gate.js";
import type { TokenUsage } from "../gate/usage.js";
import type { CooldownChange } from "../health/cooldown.js";
import type { TraceHeaders } from "../observability/observer.js";
import type { RecordedAttempt, Recorder } from "../observability/recorder.js";
import type { RoutedTarget } from "../routing/resolve.js";
import type { AttemptObserver, AttemptRejected, AttemptReleased, StreamEnd, StreamFacts } from "./attempt-spec.js";
import { HealthRecorder } from "./health-recorder.js";
import { redact, secretsOf } from "./redact.js";
import type { FallbackDeps, RunFacts } from "./run-facts.js";
import type { CutStream } from "./run-record.js";

/** The run, as its attempts see it. */
export interface AttemptRun {
  /** Its last event has been told. */
  readonly over: boolean;
  onRelease(routed: RoutedTarget, result: AttemptReleased): void;
  /** The body was handed over to its end, or the client left. */
  onBodyEnd(failed: Failure | undefined, left: Failure | undefined, cut: CutStream | undefined): void;
  onDropped(): void;
}

/** What a request was authorized with. */
export interface Credentials {
  /** Name, value, name, value, … of the request to the provider. */
  readonly headers: readonly string[];
  readonly apiKey: string | undefined;
}

export class AttemptRecord implements AttemptObserver {
  readonly number: number;
  readonly routed: RoutedTarget;
  readonly #run: AttemptRun;
  readonly #recorder: Recorder;
  readonly #health: HealthRecorder | undefined;
  /** Made when it is first told. */
  #attempt: RecordedAttempt | undefined;
  /** What no answer may repeat. */
  #credentials: Credentials | undefined;
  #over = false;
  #failed: Failure | undefined;
  #ended = false;
  #ttftMs = 0;

  /** The attempt counts for the target's health from here on. */
  constructor(
    run: AttemptRun,
    health: FallbackDeps["health"],
    { route, streaming }: RunFacts,
    recorder: Recorder,
    routed: RoutedTarget,
    number: number,
  ) {
    this.number = number;
    this.routed = routed;
    this.#run = run;
    this.#recorder = recorder;
    this.#health =
      route.probesHealth === false ? undefined : new HealthRecorder(health.begin(routed.id), streaming, this);
  }

  /** Whether anybody observes. */
  get observed(): boolean {
    return this.#recorder.active;
  }

  /** The trace context to send, where an observer gives one. */
  traceHeaders(): TraceHeaders | undefined {
    return this.#recorder.traceHeaders(this.number);
  }

  /** It was rejected or released. */
  get over(): boolean {
    return this.#over;
  }

  start(retry: boolean): void {
    if (!this.#recorder.hears("attempt-start")) return;
    const { type: providerType, origin } = this.routed.target.provider;
    const fallback = !retry && this.number > 1;
    this.#recorder.record({ type: "attempt-start", ...this.#told(), retry, fallback, providerType, origin });
  }

  /** The request has been made. */
  keep(credentials: Credentials): void {
    this.#credentials = credentials;
  }

  /** The failure without what the request was authorized with. */
  clean(failure: Failure): Failure {
    const credentials = this.#credentials;
    return credentials === undefined ? failure : redact(failure, secretsOf(credentials.headers, credentials.apiKey));
  }

  reject({ failure, durationMs, holdMs, usage }: AttemptRejected): void {
    this.#over = true;
    if (this.#recorder.hears("attempt-reject"))
      this.#recorder.record({ type: "attempt-reject", ...this.#told(), failure, durationMs, holdMs, usage });
    this.#health?.failed(failure);
  }

  /** It ended without an outcome: the client left. Harmless after one. */
  leave(): void {
    this.#health?.left();
  }

  /** Of its target, through this attempt. */
  onCooldown(change: CooldownChange): void {
    if (change.type === "recovery") return this.#recorder.record({ type: "cooldown-end", ...this.#told() });
    const { until, streak } = change.rest;
    this.#recorder.record({ type: "cooldown-start", ...this.#told(), until: Math.round(until), streak });
  }

  // As the attempt's observer

  onOverflow(limit: OverflowLimit, heldBytes: number, released: boolean): void {
    this.#recorder.record({ type: "gate-overflow", ...this.#told(), limit, heldBytes, released });
  }

  onRelease(result: AttemptReleased): void {
    const { status, ttftMs, holdMs, heldBytes, reason } = result;
    this.#over = true;
    this.#ttftMs = ttftMs;
    if (this.#recorder.hears("release"))
      this.#recorder.record({ type: "release", ...this.#told(), status, ttftMs, holdMs, heldBytes, reason });
    this.#health?.released(reason, ttftMs);
    this.#run.onRelease(this.routed, result);
  }

  onStreamFail(reported: Failure, facts: StreamFacts): void {
    if (this.#run.over) return;
    const failure = this.clean(reported);
    this.#failed = failure;
    this.#recorder.record({ type: "stream-fail", ...this.#told(), failure, ...facts });
    this.#health?.failed(failure);
  }

  onStreamEnd(end: StreamEnd): void {
    this.#ended = true;
    this.#health?.ended(end);
    if (this.#failed !== undefined || this.#run.over || !this.#recorder.hears("stream-end")) return;
    const { pausedMs: _, ...facts } = end;
    this.#recorder.record({ type: "stream-end", ...this.#told(), ttftMs: this.#ttftMs, ...facts });
  }

  onBodyEnd(left: Failure | undefined, usage: TokenUsage | undefined): void {
    const cut = this.#ended || left === undefined ? undefined : { attempt: this.#told(), usage };
    this.#run.onBodyEnd(this.#failed, left, cut);
  }

  onDropped(): void {
    this.#run.onDropped();
  }

  #told(): RecordedAttempt {
    const { id, model, target } = this.routed;
    return (this.#attempt ??= this.#recorder.attempt(this.number, id, target.provider.name, model));
  }
}
