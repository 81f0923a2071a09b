/**
 * The fallback orchestrator: drives the plan over attempts, and yields what happens until the response may be started.
 * Everything after release goes to the observers.
 */

import { failedEvent, maskFailure, ReleasedAnswer, releasedHeaders } from "../answer.js";
import type { Failure } from "../errors.js";
import type {
  AttemptRejectEvent,
  AttemptStartEvent,
  FailedEvent,
  GatewayEvent,
  ReleasedBody,
  ReleasedEvent,
} from "../events.js";
import { clientAbort, internal } from "../gate/failures.js";
import type { Recorder } from "../observability/recorder.js";
import type { ResponseHeaders } from "../response-headers.js";
import type { RoutedTarget } from "../routing/resolve.js";
import { totalDeadline } from "./attempt-clocks.js";
import { AttemptRecord, type AttemptRun } from "./attempt-record.js";
import type { AttemptRejected, AttemptReleased, AttemptResult } from "./attempt-spec.js";
import type { Attempt } from "./attempt.js";
import { Handover } from "./handover.js";
import { Plan, type PlanOutput } from "./plan.js";
import { rejectedUnsent, runAttempt, type AttemptStep, type Runner } from "./run-attempt.js";
import { forgetRequest, type FallbackDeps, type RunFacts } from "./run-facts.js";
import { RunRecord, type CutStream } from "./run-record.js";

type Answer = ReleasedEvent | FailedEvent | undefined;
type Tell = (event: AttemptStartEvent | AttemptRejectEvent) => Promise<void>;

/** Whom a run tells of its end. */
export interface RunOwner {
  /** Its last event has been told. */
  ended(run: FallbackRun): void;
  /** A detached answer was read to its end after its client had left. */
  dropped(run: FallbackRun): void;
}

interface Rejected {
  readonly failure: Failure;
  readonly headers: ResponseHeaders | undefined;
  readonly clientCredential: boolean;
}

/** No async functions on the way to the answer: each would cost a request more than all that this class does for it. */
export class FallbackRun implements AttemptRun, Runner {
  readonly #deps: FallbackDeps;
  readonly #facts: RunFacts;
  readonly #owner: RunOwner;
  readonly #plan: Plan;
  readonly #record: RunRecord;
  readonly #recorder: Recorder;
  readonly #onAbort = (): void => this.#abort();
  #rejected: Rejected[] | undefined;
  #attempt: Attempt | undefined;
  /** Of the attempt under way. */
  #attemptRecord: AttemptRecord | undefined;
  #wake: (() => void) | undefined;
  /** Made at the moment of release: the stream may be over before the event is yielded. Until it is. */
  #answer: ReleasedEvent | undefined;
  /** Of the answer. */
  #body: ReleasedBody | undefined;
  #status = 200;
  #committed = false;
  /** The consumer of the events has left. */
  #left = false;
  #stopped: Failure | undefined;
  #tell: Tell | undefined;
  #resolve: ((answer: Answer) => void) | undefined;
  #reject: ((bug: unknown) => void) | undefined;

  constructor(deps: FallbackDeps, facts: RunFacts, recorder: Recorder, owner: RunOwner) {
    this.#deps = deps;
    this.#facts = facts;
    this.#owner = owner;
    this.#recorder = recorder;
    this.#record = new RunRecord(deps, facts, recorder, this);
    this.#plan = planOf(facts, deps.random);
  }

  /** The client has left, and the answer is read on. */
  get dropping(): boolean {
    return this.#attempt?.dropping === true;
  }

  /** Ends the request: refused where nothing was sent, broken off where something was. */
  stop(failure: Failure): void {
    this.#stopped = failure;
    this.#wake?.();
    this.#attempt?.stop(failure);
  }

  /** The events of the run up to its answer. Nothing goes on while the consumer has not asked for the next one. */
  async *events(): AsyncGenerator<GatewayEvent, void, undefined> {
    const handover = new Handover<GatewayEvent>();
    const answer = this.answer((event) => handover.offer(event)).finally(() => handover.close());
    // Awaited below, unless the consumer leaves before.
    answer.catch(() => undefined);
    let asked = false;
    try {
      for (let event = await handover.take(); event !== undefined; event = await handover.take()) {
        yield event;
        handover.proceed();
      }
      asked = true;
      const last = await answer;
      if (last !== undefined) yield last;
    } finally {
      // A consumer that stops iterating has left, too.
      if (!asked) this.#leave();
      handover.close();
    }
  }

  /**
   * The answer; undefined where the client left before. The faster door for adapters: no generator is resumed on the way.
   *
   * @param tell hears of attempts that start and are rejected; the run waits for it. Never rejects
   */
  answer(tell?: Tell): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#tell = tell;
      this.#facts.signal.addEventListener("abort", this.#onAbort);
      this.#guarded(() => this.#take(this.#plan.step({ type: "start", now: this.#now(), backAt: this.#backAt() })));
    });
  }

  #take(step: PlanOutput): void {
    if (this.#isLeft()) return this.#settle(undefined);
    if (this.#stopped !== undefined) return this.#settle(this.#refuse(this.#stopped));
    switch (step.type) {
      case "give-up":
        return this.#settle(this.#giveUp(step.failure, step.rejection));
      case "wait":
        return this.#wait(step.until);
      case "attempt":
        return this.#try(step);
    }
  }

  #try(step: AttemptStep): void {
    // In the same turn as the choice: of all that come at the end of a rest one request probes the target.
    const attempt = this.#begin(step);
    if (this.#tell === undefined) return runAttempt(this.#deps, this.#facts, step, attempt, this);
    const { number, routed } = attempt;
    void this.#tell({ type: "attempt-start", attempt: number, target: routed.id }).then(() =>
      this.#guarded(() => {
        if (this.#isLeft()) this.#settle(undefined);
        else runAttempt(this.#deps, this.#facts, step, attempt, this);
      }),
    );
  }

  /** Runs a part of the run. A bug in it ends the run, and has its end in the records all the same. */
  #guarded(part: () => void): void {
    try {
      part();
    } catch (bug) {
      this.onBug(bug);
    }
  }

  /** Once. */
  #settle(answer: Answer): void {
    this.#close();
    const resolve = this.#resolve;
    this.#resolve = undefined;
    this.#reject = undefined;
    resolve?.(answer);
  }

  #close(): void {
    if (!this.#committed) {
      this.#record.clientLeft(clientAbort(), undefined);
      this.#attemptRecord?.leave();
    }
    if (!this.#committed || this.#record.over) this.#facts.signal.removeEventListener("abort", this.#onAbort);
  }

  // No private getter: V8 11 calls into its runtime for each.
  #isLeft(): boolean {
    return this.#left || this.#facts.signal.aborted;
  }

  // As its attempts see it

  get stopped(): Failure | undefined {
    return this.#stopped;
  }

  get over(): boolean {
    return this.#record.over;
  }

  sent(attempt: Attempt): void {
    this.#attempt = attempt;
  }

  onResult(attempt: AttemptRecord, result: AttemptResult, clientCredential: boolean): void {
    this.#guarded(() => {
      if (result.type === "rejected") return this.#goOn(attempt, result, clientCredential);
      // The client may have left while the result was on its way, or before a detached answer came.
      if (!this.#isLeft()) return this.#settle(this.#commit());
      result.body.cancel();
      this.#settle(undefined);
    });
  }

  onBug(bug: unknown): void {
    const failure = internal(bug);
    const attempt = this.#attemptRecord;
    if (attempt !== undefined && !attempt.over) this.#rejectedAt(attempt, rejectedUnsent(failure, 0), false);
    this.#record.end("failure", 500, failure);
    this.#close();
    this.#reject?.(bug);
  }

  /** After an attempt that was rejected. */
  #goOn(attempt: AttemptRecord, result: AttemptRejected, clientCredential: boolean): void {
    const rejected = this.#rejectedAt(attempt, result, clientCredential);
    if (this.#isLeft()) return this.#settle(undefined);
    if (this.#tell === undefined) return this.#take(this.#afterRejection(result.failure));
    void this.#tell(rejected).then(() => this.#guarded(() => this.#take(this.#afterRejection(result.failure))));
  }

  #afterRejection(failure: Failure): PlanOutput {
    return this.#plan.step({ type: "rejected", failure, now: this.#now(), backAt: this.#backAt() });
  }

  onRelease(routed: RoutedTarget, { status, headers, reason, body, jsonBody, ttftMs, holdMs }: AttemptReleased): void {
    const { resolution, route, protocol, gated, streaming, body: request } = this.#facts;
    this.#record.attempted({ target: routed.id, status, code: undefined, durationMs: ttftMs });
    this.#record.answerBegins();
    this.#deps.router.answered(resolution, routed, route.issuesIds === true ? request.value : undefined);
    const facts = {
      streaming,
      jsonBody: jsonBody && (gated || !streaming),
      judged: reason === "output" || reason === "outcome" || reason === "empty",
      encoded: !gated,
    };
    const own = this.#record.ownHeaders(holdMs, ttftMs);
    const { writeStallTimeoutMs } = routed.target.timeouts;
    const answer = releasedHeaders(headers, protocol, facts, own);
    forgetRequest(this.#facts);
    this.#answer = new ReleasedAnswer(status, answer, body, writeStallTimeoutMs);
    this.#body = body;
    this.#status = status;
  }

  onBodyEnd(failed: Failure | undefined, left: Failure | undefined, cut: CutStream | undefined): void {
    this.#facts.signal.removeEventListener("abort", this.#onAbort);
    const status = this.#status;
    // A client that leaves at the error event which it was sent has seen a failure.
    if (failed !== undefined) this.#record.end("failure", status, failed);
    else if (left !== undefined) this.#record.clientLeft(left, cut);
    else this.#record.end("success", status, undefined);
  }

  onDropped(): void {
    this.#owner.dropped(this);
  }

  /** Its last event has been told. */
  ended(): void {
    this.#owner.ended(this);
  }

  #begin({ target }: AttemptStep): AttemptRecord {
    const routed = this.#facts.resolution.targets[target] as RoutedTarget;
    const number = this.#record.attempts + 1;
    this.#attemptRecord = new AttemptRecord(this, this.#deps.health, this.#facts, this.#recorder, routed, number);
    return this.#attemptRecord;
  }

  #commit(): ReleasedEvent {
    this.#committed = true;
    this.#record.committed();
    const answer = this.#answer as ReleasedEvent;
    this.#answer = undefined;
    return answer;
  }

  #rejectedAt(attempt: AttemptRecord, result: AttemptRejected, clientCredential: boolean): AttemptRejectEvent {
    const { failure, headers, durationMs } = result;
    const target = attempt.routed.id;
    this.#record.attempted({ target, status: failure.status, code: failure.code, durationMs });
    (this.#rejected ??= []).push({ failure, headers, clientCredential });
    attempt.reject(result);
    return { type: "attempt-reject", attempt: attempt.number, target, failure, durationMs };
  }

  /** @param rejection which of the rejections is answered with, from 0 */
  #giveUp(failure: Failure, rejection: number): FailedEvent {
    const { headers, clientCredential } = (this.#rejected as Rejected[])[rejection] as Rejected;
    const { protocol, requestId } = this.#facts;
    const told = maskFailure(failure, clientCredential);
    this.#record.answerBegins();
    this.#record.end("failure", told.status, failure);
    return failedEvent(protocol, told, headers, this.#record.ownHeaders(0, this.#record.lastDurationMs), requestId);
  }

  #refuse(failure: Failure): FailedEvent {
    const { protocol, requestId } = this.#facts;
    this.#record.end("failure", failure.status, failure);
    return failedEvent(protocol, failure, undefined, this.#record.ownHeaders(0, 0), requestId);
  }

  #leave(): void {
    this.#left = true;
    this.#abort();
  }

  #abort(): void {
    this.#wake?.();
    if (this.#body !== undefined) return this.#body.cancel();
    // A detached answer is read to its end and dropped: its release cancels the body, which then goes on by itself.
    if (!this.#facts.detached) this.#attempt?.abort(clientAbort());
  }

  #now(): number {
    return this.#deps.clock.now();
  }

  #backAt(): readonly number[] | undefined {
    const { targets, pinned } = this.#facts.resolution;
    return pinned ? undefined : this.#deps.health.backAt(targets.map(({ id }) => id));
  }

  #wait(until: number): void {
    const { clock } = this.#deps;
    const since = clock.now();
    const timer = clock.setTimer(until, () => this.#wake?.());
    this.#wake = () => {
      timer.cancel();
      this.#wake = undefined;
      this.#record.waited(clock.now() - since);
      this.#guarded(() => {
        if (this.#isLeft()) this.#settle(undefined);
        else this.#take(this.#plan.step({ type: "waited", now: this.#now() }));
      });
    };
  }
}

function planOf({ resolution, startedAt }: RunFacts, random: () => number): Plan {
  const targets = resolution.targets.map(({ target }) => target);
  if (targets.every(({ timeouts }) => timeouts.totalTimeoutMs === undefined))
    return new Plan(targets, Infinity, random);
  const lastStarts = targets.map(({ timeouts }) => totalDeadline(timeouts, startedAt));
  const reserves = targets.map(({ timeouts }) => timeouts.minAttemptMs);
  return new Plan(targets, lastStarts, random, reserves);
}
