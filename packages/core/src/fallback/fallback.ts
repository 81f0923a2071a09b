/**
 * The fallback orchestrator: drives the plan over attempts, and yields what happens until the response may be started.
 * Everything after release goes to the observers.
 */

import { failedEvent, maskFailure, releasedHeaders } from "../answer.js";
import type { Failure } from "../errors.js";
import type { AttemptRejectEvent, AttemptStartEvent, FailedEvent, GatewayEvent, ReleasedEvent } from "../events.js";
import { clientAbort, internal } from "../gate/failures.js";
import type { ResponseHeaders } from "../response-headers.js";
import type { RoutedTarget } from "../routing/resolve.js";
import { totalDeadline } from "./attempt-clocks.js";
import { AttemptRecord, type AttemptRun } from "./attempt-record.js";
import type { AttemptRejected, AttemptReleased } from "./attempt-spec.js";
import type { Attempt } from "./attempt.js";
import { Handover } from "./handover.js";
import { Plan, type PlanOutput } from "./plan.js";
import { rejectedUnsent, runAttempt, type AttemptOutcome, type AttemptStep, type Runner } from "./run-attempt.js";
import { withoutBody, type FallbackDeps, type RunFacts } from "./run-facts.js";
import { RunRecord, type CutStream } from "./run-record.js";

interface Rejected {
  readonly failure: Failure;
  readonly headers: ResponseHeaders | undefined;
  readonly clientCredential: boolean;
}

export class FallbackRun implements AttemptRun, Runner {
  readonly #deps: FallbackDeps;
  #facts: RunFacts;
  readonly #plan: Plan;
  readonly #record: RunRecord;
  readonly #rejected: Rejected[] = [];
  readonly #onAbort = (): void => this.#abort();
  #attempt: Attempt | undefined;
  /** Of the attempt under way. */
  #attemptRecord: AttemptRecord | undefined;
  #wake: (() => void) | undefined;
  /** Made at the moment of release: the stream may be over before the event is yielded. */
  #released: ReleasedEvent | undefined;
  #committed = false;
  /** The consumer of the events has left. */
  #left = false;
  #stopped: Failure | undefined;

  constructor(deps: FallbackDeps, facts: RunFacts) {
    this.#deps = deps;
    this.#facts = facts;
    this.#record = new RunRecord(deps, facts);
    const targets = facts.resolution.targets.map(({ target }) => target);
    const lastStarts = targets.map(({ timeouts }) => totalDeadline(timeouts, facts.startedAt));
    const reserves = targets.map(({ timeouts }) => timeouts.minAttemptMs);
    this.#plan = new Plan(targets, lastStarts, deps.random, reserves);
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
   * @param tell hears of attempts that start and are rejected; the run waits for it
   */
  async answer(
    tell?: (event: AttemptStartEvent | AttemptRejectEvent) => Promise<void>,
  ): Promise<ReleasedEvent | FailedEvent | undefined> {
    const { signal } = this.#facts.request;
    signal.addEventListener("abort", this.#onAbort);
    try {
      return await this.#steps(tell);
    } catch (cause) {
      this.#record.end("failure", 500, internal(cause));
      throw cause;
    } finally {
      if (!this.#committed) {
        this.#record.clientLeft(clientAbort(), {});
        this.#attemptRecord?.leave();
      }
      if (!this.#committed || this.#record.over) signal.removeEventListener("abort", this.#onAbort);
    }
  }

  async #steps(
    tell?: (event: AttemptStartEvent | AttemptRejectEvent) => Promise<void>,
  ): Promise<ReleasedEvent | FailedEvent | undefined> {
    let step: PlanOutput = this.#plan.step({ type: "start", now: this.#now(), backAt: this.#backAt() });
    while (!this.#isLeft) {
      if (this.#stopped !== undefined) return this.#refuse(this.#stopped);
      if (step.type === "give-up") return this.#giveUp(step.failure, step.rejection);
      if (step.type === "wait") {
        await this.#wait(step.until);
        if (!this.#isLeft) step = this.#plan.step({ type: "waited", now: this.#now() });
        continue;
      }
      // In the same turn as the choice: of all that come at the end of a rest one request probes the target.
      const attempt = this.#begin(step);
      if (tell !== undefined) await tell({ type: "attempt-start", attempt: attempt.number, target: attempt.routed.id });
      if (this.#isLeft) return undefined;
      const { result, clientCredential } = await this.#try(step, attempt);
      if (result.type === "released") {
        // The client may have left while the result was on its way, or before a detached answer came.
        if (!this.#isLeft) return this.#commit();
        result.body.cancel();
        return undefined;
      }
      const rejected = this.#reject(attempt, result, clientCredential);
      if (this.#isLeft) return undefined;
      if (tell !== undefined) await tell(rejected);
      step = this.#plan.step({ type: "rejected", failure: result.failure, now: this.#now(), backAt: this.#backAt() });
    }
    return undefined;
  }

  get #isLeft(): boolean {
    return this.#left || this.#facts.request.signal.aborted;
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
    this.#facts = withoutBody(this.#facts);
    this.#released = { type: "released", status, headers: answer, body, writeStallTimeoutMs };
  }

  onBodyEnd(failed: Failure | undefined, left: Failure | undefined, cut: CutStream): void {
    this.#facts.request.signal.removeEventListener("abort", this.#onAbort);
    const status = this.#released?.status ?? 200;
    // A client that leaves at the error event which it was sent has seen a failure.
    if (failed !== undefined) this.#record.end("failure", status, failed);
    else if (left !== undefined) this.#record.clientLeft(left, cut);
    else this.#record.end("success", status, undefined);
  }

  onDropped(): void {
    this.#facts.onDropped();
  }

  #begin({ target }: AttemptStep): AttemptRecord {
    const routed = this.#facts.resolution.targets[target] as RoutedTarget;
    const number = this.#record.attempts + 1;
    this.#attemptRecord = new AttemptRecord(this, this.#deps.health, this.#facts, routed, number);
    return this.#attemptRecord;
  }

  async #try(step: AttemptStep, attempt: AttemptRecord): Promise<AttemptOutcome> {
    try {
      return await runAttempt(this.#deps, this.#facts, step, attempt, this);
    } catch (bug) {
      // It has its end in the records all the same.
      if (this.#released === undefined) this.#reject(attempt, rejectedUnsent(internal(bug), 0), false);
      throw bug;
    }
  }

  #commit(): ReleasedEvent {
    this.#committed = true;
    this.#record.committed();
    return this.#released as ReleasedEvent;
  }

  #reject(attempt: AttemptRecord, result: AttemptRejected, clientCredential: boolean): AttemptRejectEvent {
    const { failure, headers, durationMs } = result;
    const target = attempt.routed.id;
    this.#record.attempted({ target, status: failure.status, code: failure.code, durationMs });
    this.#rejected.push({ failure, headers, clientCredential });
    attempt.reject(result);
    return { type: "attempt-reject", attempt: attempt.number, target, failure, durationMs };
  }

  /** @param rejection which of the rejections is answered with, from 0 */
  #giveUp(failure: Failure, rejection: number): FailedEvent {
    const { headers, clientCredential } = this.#rejected[rejection] as Rejected;
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
    if (this.#released !== undefined) return this.#released.body.cancel();
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

  async #wait(until: number): Promise<void> {
    const { clock } = this.#deps;
    const since = clock.now();
    await new Promise<void>((resolve) => {
      const timer = clock.setTimer(until, resolve);
      this.#wake = () => {
        timer.cancel();
        resolve();
      };
    });
    this.#wake = undefined;
    this.#record.waited(clock.now() - since);
  }
}
