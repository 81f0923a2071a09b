/** What is kept and told of one run: its trail, its last event, and the headers that say both to the client. */

import { routingHeaders, type TrailEntry } from "../answer.js";
import type { Clock } from "../clock.js";
import type { Failure } from "../errors.js";
import type { TokenUsage } from "../gate/usage.js";
import type { RecordedAttempt, Recorder } from "../observability/recorder.js";
import type { HeaderPairs } from "../response-headers.js";
import type { Resolution } from "../routing/router.js";
import type { FallbackDeps, RunFacts } from "./run-facts.js";

/** A released stream that the client left. */
export interface CutStream {
  readonly attempt: RecordedAttempt;
  readonly usage: TokenUsage | undefined;
}

/** The run that a record is of. */
export interface RecordedRun {
  /** Its last event has been told. */
  ended(): void;
}

export class RunRecord {
  readonly #clock: Clock;
  readonly #config: FallbackDeps["config"];
  readonly #recorder: Recorder;
  readonly #requestId: string;
  readonly #skipped: Resolution["skipped"];
  readonly #startedAt: number;
  readonly #run: RecordedRun;
  /** Made anew for each attempt, since an array that is pushed to has room for 16 more. */
  #trail: readonly TrailEntry[] = [];
  /** Between attempts, in ms. */
  #waitedMs = 0;
  /** Set when the answer begins. */
  #overheadMs: number | undefined;
  #released = false;
  #over = false;

  constructor({ clock, config }: FallbackDeps, facts: RunFacts, recorder: Recorder, run: RecordedRun) {
    const { requestId, resolution, startedAt } = facts;
    this.#run = run;
    this.#clock = clock;
    this.#config = config;
    this.#recorder = recorder;
    this.#requestId = requestId;
    this.#skipped = resolution.skipped;
    this.#startedAt = startedAt;
  }

  /** The last event has been told. */
  get over(): boolean {
    return this.#over;
  }

  get attempts(): number {
    return this.#trail.length;
  }

  attempted(entry: TrailEntry): void {
    this.#trail = [...this.#trail, entry];
  }

  waited(ms: number): void {
    this.#waitedMs += ms;
  }

  /** What follows is the provider's time and the client's. */
  answerBegins(): void {
    let attempts = 0;
    for (const { durationMs } of this.#trail) attempts += durationMs;
    this.#overheadMs = Math.max(0, this.#clock.now() - this.#startedAt - attempts - this.#waitedMs);
  }

  /** The client has been handed the answer. */
  committed(): void {
    this.#released = true;
  }

  ownHeaders(holdMs: number, upstreamMs: number): HeaderPairs {
    const { headerPrefix: prefix, exposeRouting: expose } = this.#config;
    const skipped = this.#skipped;
    return routingHeaders({
      prefix,
      expose,
      requestId: this.#requestId,
      trail: this.#trail,
      skipped,
      holdMs,
      upstreamMs,
    });
  }

  /** Of the last attempt, in ms. */
  get lastDurationMs(): number {
    return this.#trail[this.#trail.length - 1]?.durationMs ?? 0;
  }

  /** The client left, or takes nothing. */
  clientLeft(failure: Failure, cut: CutStream | undefined): void {
    if (this.#over) return;
    this.#recorder.record({ type: "client-abort", phase: this.#released ? "streaming" : "waiting", failure, ...cut });
    this.end("client-abort", failure.status, failure);
  }

  /** The last event, once. */
  end(outcome: "success" | "failure" | "client-abort", status: number, failure: Failure | undefined): void {
    if (this.#over) return;
    this.#over = true;
    if (this.#recorder.hears("request-end")) {
      const target = this.#trail[this.#trail.length - 1]?.target;
      this.#recorder.record({
        type: "request-end",
        status,
        outcome,
        failure,
        attempts: this.#trail.length,
        target,
        targetConfigured: target === undefined ? undefined : this.#recorder.isConfigured(target),
        released: this.#released,
        durationMs: this.#clock.now() - this.#startedAt,
        overheadMs: this.#overheadMs,
      });
    } else if (failure !== undefined) this.#recorder.noteBug(failure);
    this.#run.ended();
  }
}
