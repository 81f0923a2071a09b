/**
 * The fallback orchestrator: drives the plan over attempts, and yields what happens until the response may be started.
 * Everything after release goes to the observers.
 */

import { failedEvent, maskFailure, releasedHeaders, routingHeaders, type AnswerHeaders, type TrailEntry } from "../answer.js";
import type { Clock } from "../clock.js";
import type { ResolvedConfig } from "../config/resolved.js";
import type { Failure } from "../errors.js";
import type { FailedEvent, GatewayEvent, ReleasedEvent } from "../events.js";
import { clientAbort, internal, totalTimeout } from "../gate/failures.js";
import { gateRules } from "../gate/options.js";
import type { GateProtocol } from "../gate/protocols/protocol.js";
import type { TokenUsage } from "../gate/usage.js";
import type { Health } from "../health/health.js";
import type { RecordedAttempt, Recorder } from "../observability/recorder.js";
import type { GatewayRequest } from "../request.js";
import { isFailure } from "../request-failures.js";
import type { RequestBody } from "../routing/request-body.js";
import type { RoutedTarget } from "../routing/resolve.js";
import type { Resolution, Router } from "../routing/router.js";
import type { Route } from "../routing/routes.js";
import type { ResponseHeaders } from "../response-headers.js";
import type { UpstreamClient } from "../upstream/upstream.js";
import { attemptClocks, totalDeadline, type ClockFacts } from "./attempt-clocks.js";
import { Attempt, type AttemptObserver, type AttemptResult } from "./attempt.js";
import { HealthRecorder } from "./health-recorder.js";
import { Plan, type PlanOutput } from "./plan.js";
import { redact } from "./redact.js";
import { targetRequest } from "./target-request.js";

export interface FallbackDeps {
  readonly config: ResolvedConfig;
  readonly client: UpstreamClient;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly health: Health;
  readonly router: Router;
}

/** One request, understood and resolved. */
export interface RunFacts {
  readonly requestId: string;
  readonly route: Route;
  readonly protocol: GateProtocol;
  readonly request: GatewayRequest;
  readonly body: RequestBody;
  readonly resolution: Resolution;
  /** For the records. */
  readonly metadata: Readonly<Record<string, string>> | undefined;
  readonly streaming: boolean;
  /** False: relayed ungated although it streams. */
  readonly gated: boolean;
  /** The upstream answer is read to its end even when the client leaves. */
  readonly detached: boolean;
  readonly answersToolResult: boolean;
  readonly clocks: ClockFacts;
  readonly startedAt: number;
  readonly recorder: Recorder;
  /** A detached answer was read to its end after its client had left. */
  readonly onDropped: () => void;
}

const sentBody: RequestBody = { value: {}, bytes: undefined };

interface Rejected {
  readonly failure: Failure;
  readonly headers: ResponseHeaders | undefined;
  readonly clientCredential: boolean;
}

export class FallbackRun {
  readonly #deps: FallbackDeps;
  #facts: RunFacts;
  readonly #plan: Plan;
  readonly #trail: TrailEntry[] = [];
  readonly #rejected: Rejected[] = [];
  readonly #onAbort = (): void => this.#abort();
  #attempt: Attempt | undefined;
  /** Of the attempt under way. */
  #health: HealthRecorder | undefined;
  #wake: (() => void) | undefined;
  /** Made at the moment of release: the stream may be over before the event is yielded. */
  #released: ReleasedEvent | undefined;
  #committed = false;
  #over = false;
  /** Between attempts, in ms. */
  #waitedMs = 0;
  /** Set when the answer begins. */
  #overheadMs: number | undefined;
  /** The gateway closes, and would wait no longer. */
  #stopped: Failure | undefined;

  constructor(deps: FallbackDeps, facts: RunFacts) {
    this.#deps = deps;
    this.#facts = facts;
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

  async *events(): AsyncGenerator<GatewayEvent, void, undefined> {
    const { signal } = this.#facts.request;
    signal.addEventListener("abort", this.#onAbort);
    try {
      yield* this.#steps();
    } catch (cause) {
      this.#end("failure", 500, internal(cause));
      throw cause;
    } finally {
      // A consumer that stops iterating has left, too.
      if (!this.#committed) this.#recordAbort("waiting");
      if (!this.#committed) this.#health?.left();
      if (!this.#committed || this.#over) signal.removeEventListener("abort", this.#onAbort);
    }
  }

  async *#steps(): AsyncGenerator<GatewayEvent, void, undefined> {
    const { signal } = this.#facts.request;
    let step: PlanOutput = this.#plan.step({ type: "start", now: this.#now(), backAt: this.#backAt() });
    while (!signal.aborted) {
      if (this.#stopped !== undefined) return yield this.#refuse(this.#stopped);
      if (step.type === "give-up") return yield this.#giveUp(step.failure, step.rejection);
      if (step.type === "wait") {
        await this.#wait(step.until);
        if (!signal.aborted) step = this.#plan.step({ type: "waited", now: this.#now() });
        continue;
      }
      const routed = this.#facts.resolution.targets[step.target] as RoutedTarget;
      const number = this.#trail.length + 1;
      // In the same turn as the choice: of all that come at the end of a rest one request probes the target.
      this.#health = this.#beginHealth(routed, number);
      yield { type: "attempt-start", attempt: number, target: routed.id };
      if (signal.aborted) return;
      const { result, clientCredential } = await this.#try(routed, number, step).catch((cause: unknown) => this.#crash(routed, number, cause));
      if (result.type === "released") {
        // The client may have left while the result was on its way, or before a detached answer came.
        if (signal.aborted) return result.body.cancel();
        this.#committed = true;
        return yield this.#released as ReleasedEvent;
      }
      const rejected = this.#reject(routed, number, result, clientCredential);
      if (signal.aborted) return;
      yield rejected;
      step = this.#plan.step({ type: "rejected", failure: result.failure, now: this.#now(), backAt: this.#backAt() });
    }
  }

  #backAt(): readonly number[] | undefined {
    const { targets, pinned } = this.#facts.resolution;
    return pinned ? undefined : this.#deps.health.backAt(targets.map(({ id }) => id));
  }

  #beginHealth(routed: RoutedTarget, number: number): HealthRecorder | undefined {
    const { streaming, recorder, route } = this.#facts;
    if (route.probesHealth === false) return undefined;
    const health = this.#deps.health.begin(routed.id);
    return new HealthRecorder({ health, recorder, attempt: this.#recorded(routed, number), streaming });
  }

  #now(): number {
    return this.#deps.clock.now();
  }

  async #try(
    routed: RoutedTarget,
    number: number,
    step: PlanOutput & { type: "attempt" },
  ): Promise<{ result: AttemptResult; clientCredential: boolean }> {
    const facts = this.#facts;
    const deps = this.#deps;
    const startedAt = this.#now();
    this.#recordStart(routed, number, step.retry);
    const trace = facts.recorder.traceHeaders(number);
    const request = await targetRequest({ ...facts, config: deps.config, clock: deps.clock, trace }, routed);
    const rejected = (failure: Failure): { result: AttemptResult; clientCredential: boolean } => ({
      result: { type: "rejected", failure, headers: undefined, durationMs: this.#now() - startedAt, holdMs: 0, usage: undefined },
      clientCredential: false,
    });
    if (facts.request.signal.aborted) return rejected(clientAbort());
    const { anotherTarget } = step;
    const clocks = attemptClocks(routed.target.timeouts, deps.config.gate, facts.clocks, { startedAt, anotherTarget });
    const { total } = clocks;
    if (total !== undefined && this.#now() >= total.at) return rejected(timeIsUp(totalTimeout(total.timeoutMs)));
    if (this.#stopped !== undefined) return rejected(this.#stopped);
    if (isFailure(request)) return rejected(request);
    const rules = gateRules(facts.protocol, deps.config.gate, {
      ttftTimeoutMs: clocks.ttftTimeoutMs,
      anotherTarget: step.anotherTarget,
      answersToolResult: facts.answersToolResult,
      requireTerminal: routed.target.provider.requireTerminal,
    });
    const { attempt, result } = Attempt.run(
      {
        request: request.upstream,
        startedAt,
        protocol: facts.protocol,
        rules: facts.gated ? rules : undefined,
        clocks,
        maxHeldBytes: deps.config.gate.maxHeldBytes,
        onMidStreamFailure: deps.config.onMidStreamFailure ?? facts.protocol.onMidStreamFailure,
        detached: facts.detached,
        readUsage: facts.recorder.active || deps.health.wantsUsage,
        onValue: facts.route.issuesIds === true ? (value) => deps.router.issued(routed, value) : undefined,
      },
      deps.client,
      deps.clock,
      this.#observe(routed, number, request.secrets),
    );
    this.#attempt = attempt;
    const outcome = await result;
    const { clientCredential } = request;
    if (outcome.type === "released") return { result: outcome, clientCredential };
    const failure = outcome.failure.kind === "total-timeout" ? timeIsUp(outcome.failure) : redact(outcome.failure, request.secrets);
    return { result: { ...outcome, failure }, clientCredential };
  }

  #recordStart(routed: RoutedTarget, number: number, retry: boolean): void {
    const { type: providerType, origin } = routed.target.provider;
    const fallback = !retry && number > 1;
    this.#facts.recorder.record({ type: "attempt-start", ...this.#recorded(routed, number), retry, fallback, providerType, origin });
  }

  #observe(routed: RoutedTarget, number: number, secrets: readonly string[]): AttemptObserver {
    const { recorder } = this.#facts;
    const attempt = this.#recorded(routed, number);
    let failed: Failure | undefined;
    const health = this.#health;
    let ended = false;
    let ttftMs = 0;
    return {
      onOverflow: (limit, heldBytes, released) => recorder.record({ type: "gate-overflow", ...attempt, limit, heldBytes, released }),
      onRelease: (result) => {
        ({ ttftMs } = result);
        this.#release(routed, number, result);
      },
      onStreamFail: (reported, facts) => {
        const failure = redact(reported, secrets);
        if (this.#over) return;
        failed = failure;
        recorder.record({ type: "stream-fail", ...attempt, failure, ...facts });
        health?.failed(failure);
      },
      onStreamEnd: ({ pausedMs, ...facts }) => {
        ended = true;
        health?.ended({ ...facts, pausedMs });
        if (failed === undefined && !this.#over) recorder.record({ type: "stream-end", ...attempt, ttftMs, ...facts });
      },
      onBodyEnd: (left, usage) => this.#endBody(failed, left, ended ? {} : { attempt, usage }),
      onDropped: () => this.#facts.onDropped(),
    };
  }

  #release(routed: RoutedTarget, number: number, result: AttemptResult & { type: "released" }): void {
    const facts = this.#facts;
    this.#trail.push({ target: routed.id, status: result.status, code: undefined, durationMs: result.ttftMs });
    const { status, ttftMs, holdMs, heldBytes, reason } = result;
    this.#overheadMs = this.#ownTime();
    this.#deps.router.answered(facts.resolution, routed, facts.body.value);
    facts.recorder.record({ type: "release", ...this.#recorded(routed, number), status, ttftMs, holdMs, heldBytes, reason });
    this.#health?.released(reason, ttftMs);
    const judged = reason === "output" || reason === "outcome" || reason === "empty";
    const jsonBody = result.jsonBody && (facts.gated || !facts.streaming);
    const own = this.#ownHeaders(holdMs, ttftMs);
    const headers = releasedHeaders(result.headers, facts.protocol, { streaming: facts.streaming, jsonBody, judged, encoded: !facts.gated }, own);
    const { writeStallTimeoutMs } = routed.target.timeouts;
    // Nothing is sent again: a large request is not kept for as long as its answer streams.
    this.#facts = { ...facts, body: sentBody, request: { ...facts.request, body: undefined } };
    this.#released = { type: "released", status, headers, body: result.body, writeStallTimeoutMs };
  }

  #reject(
    routed: RoutedTarget,
    number: number,
    { failure, headers, durationMs, holdMs, usage }: AttemptResult & { type: "rejected" },
    clientCredential: boolean,
  ): GatewayEvent {
    this.#trail.push({ target: routed.id, status: failure.status, code: failure.code, durationMs });
    this.#rejected.push({ failure, headers, clientCredential });
    this.#facts.recorder.record({ type: "attempt-reject", ...this.#recorded(routed, number), failure, durationMs, holdMs, usage });
    this.#health?.failed(failure);
    return { type: "attempt-reject", attempt: number, target: routed.id, failure, durationMs };
  }

  /** A bug. The attempt has its end in the records all the same. */
  #crash(routed: RoutedTarget, number: number, cause: unknown): never {
    const rejected = { type: "rejected", failure: internal(cause), headers: undefined, durationMs: 0, holdMs: 0, usage: undefined } as const;
    if (this.#released === undefined) this.#reject(routed, number, rejected, false);
    throw cause;
  }

  #giveUp(failure: Failure, rejection: number): FailedEvent {
    const facts = this.#facts;
    const { headers, clientCredential } = this.#rejected[rejection] as Rejected;
    const upstreamMs = this.#trail[this.#trail.length - 1]?.durationMs ?? 0;
    const told = maskFailure(failure, clientCredential);
    this.#overheadMs = this.#ownTime();
    this.#end("failure", told.status, failure);
    return failedEvent(facts.protocol, told, headers, this.#ownHeaders(0, upstreamMs), facts.requestId);
  }

  #refuse(failure: Failure): FailedEvent {
    this.#end("failure", failure.status, failure);
    return failedEvent(this.#facts.protocol, failure, undefined, this.#ownHeaders(0, 0), this.#facts.requestId);
  }

  #ownHeaders(holdMs: number, upstreamMs: number): AnswerHeaders {
    const { headerPrefix: prefix, exposeRouting: expose } = this.#deps.config;
    const { requestId, resolution } = this.#facts;
    return routingHeaders({ prefix, expose, requestId, trail: this.#trail, skipped: resolution.skipped, holdMs, upstreamMs });
  }

  /** After release: the body was handed over to its end, or the client left. */
  #endBody(failed: Failure | undefined, left: Failure | undefined, cut: CutStream): void {
    this.#facts.request.signal.removeEventListener("abort", this.#onAbort);
    const { status } = this.#released as ReleasedEvent;
    // A client that leaves at the error event which it was sent has seen a failure.
    if (failed !== undefined) return this.#end("failure", status, failed);
    if (left !== undefined) return this.#recordAbort(this.#committed ? "streaming" : "waiting", left, cut);
    this.#end("success", status, undefined);
  }

  #recordAbort(phase: "waiting" | "streaming", failure: Failure = clientAbort(), cut: CutStream = {}): void {
    if (this.#over) return;
    this.#facts.recorder.record({ type: "client-abort", phase, failure, ...cut });
    this.#end("client-abort", phase === "streaming" ? (this.#released?.status ?? 200) : failure.status, failure);
  }

  /** The last event, once. */
  #end(outcome: "success" | "failure" | "client-abort", status: number, failure: Failure | undefined): void {
    if (this.#over) return;
    this.#over = true;
    const last = this.#trail[this.#trail.length - 1];
    const durationMs = this.#now() - this.#facts.startedAt;
    this.#facts.recorder.record({
      type: "request-end",
      status,
      outcome,
      failure,
      attempts: this.#trail.length,
      target: last?.target,
      targetConfigured: last && this.#facts.recorder.isConfigured(last.target),
      released: this.#committed,
      durationMs,
      overheadMs: this.#overheadMs,
    });
  }

  /** The client left. */
  #abort(): void {
    this.#wake?.();
    if (this.#released !== undefined) return this.#released.body.cancel();
    // A detached answer is read to its end and dropped: its release cancels the body, which then goes on by itself.
    if (!this.#facts.detached) this.#attempt?.abort(clientAbort());
  }

  #recorded(routed: RoutedTarget, attempt: number): RecordedAttempt {
    return this.#facts.recorder.attempt(attempt, routed.id, routed.target.provider.name, routed.model);
  }

  /** Since the request came, without attempts and the waits between them, in ms. */
  #ownTime(): number {
    const attempts = this.#trail.reduce((total, { durationMs }) => total + durationMs, 0);
    return Math.max(0, this.#now() - this.#facts.startedAt - attempts - this.#waitedMs);
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
    this.#waitedMs += clock.now() - since;
  }
}

/** A released stream that the client left. */
interface CutStream {
  readonly attempt?: RecordedAttempt | undefined;
  readonly usage?: TokenUsage | undefined;
}

/**
 * The time of one target is up: its share, or its own total timeout. Whether another still has time is the plan's to know,
 * and no matter of status lists.
 */
function timeIsUp(failure: Failure): Failure {
  return { ...failure, alwaysFallBack: true };
}
