/** One attempt of a run, from the request as its target gets it to its result. */

import type { Failure } from "../errors.js";
import { clientAbort, totalTimeout } from "../gate/failures.js";
import { gateRules } from "../gate/options.js";
import type { ClientSignal } from "../request.js";
import { isFailure } from "../request-failures.js";
import { attemptClocks, type AttemptClocks } from "./attempt-clocks.js";
import type { AttemptRecord } from "./attempt-record.js";
import type { AttemptRejected, AttemptResult, AttemptSpec } from "./attempt-spec.js";
import { Attempt } from "./attempt.js";
import type { PlanOutput } from "./plan.js";
import { withRetryHeaders } from "./retry-after.js";
import type { FallbackDeps, RunFacts } from "./run-facts.js";
import { targetRequest, type TargetRequest } from "./target-request.js";

export type AttemptStep = PlanOutput & { readonly type: "attempt" };

/** The run, as long as the attempt is made. */
export interface Runner {
  /** Why nothing is sent any more: the gateway closes. */
  readonly stopped: Failure | undefined;
  /** Called at once when the request has been sent. */
  sent(attempt: Attempt): void;
}

export interface AttemptOutcome {
  readonly result: AttemptResult;
  /** The request carried the client's own credential. */
  readonly clientCredential: boolean;
}

/** Ends in a result, whatever the target does. What it throws is a bug. */
export async function runAttempt(
  deps: FallbackDeps,
  facts: RunFacts,
  step: AttemptStep,
  record: AttemptRecord,
  runner: Runner,
): Promise<AttemptOutcome> {
  const { clock } = deps;
  const startedAt = clock.now();
  record.start(step.retry);
  const trace = facts.recorder.traceHeaders(record.number);
  const request = await targetRequest({ ...facts, clock, trace }, record.routed);
  const { anotherTarget } = step;
  const clocks = attemptClocks(record.routed.target.timeouts, deps.config.gate, facts.clocks, {
    startedAt,
    anotherTarget,
  });
  const unsent = reasonNotToSend(clocks, clock.now(), facts.request.signal) ?? runner.stopped;
  if (unsent !== undefined) return { result: rejectedUnsent(unsent, clock.now() - startedAt), clientCredential: false };
  if (isFailure(request)) return { result: rejectedUnsent(request, clock.now() - startedAt), clientCredential: false };
  record.keep(request.secrets);
  const spec = attemptSpec(deps, facts, step, record, request, clocks, startedAt);
  const { attempt, result } = Attempt.run(spec, deps.client, clock, record);
  runner.sent(attempt);
  const { clientCredential } = request;
  const outcome = await result;
  if (outcome.type === "released") return { result: outcome, clientCredential };
  return { result: { ...outcome, failure: toldFailure(deps, outcome, record) }, clientCredential };
}

function attemptSpec(
  deps: FallbackDeps,
  facts: RunFacts,
  { anotherTarget }: AttemptStep,
  { routed }: AttemptRecord,
  request: TargetRequest,
  clocks: AttemptClocks,
  startedAt: number,
): AttemptSpec {
  const { config, router, health } = deps;
  const { protocol, answersToolResult } = facts;
  const { requireTerminal } = routed.target.provider;
  const { ttftTimeoutMs } = clocks;
  const known = { ttftTimeoutMs, anotherTarget, answersToolResult, requireTerminal };
  return {
    request: request.upstream,
    startedAt,
    protocol,
    rules: facts.gated ? gateRules(protocol, config.gate, known) : undefined,
    clocks,
    maxHeldBytes: config.gate.maxHeldBytes,
    onMidStreamFailure: config.onMidStreamFailure ?? protocol.onMidStreamFailure,
    detached: facts.detached,
    readUsage: facts.recorder.active || health.wantsUsage,
    onValue: facts.route.issuesIds === true ? (value) => router.issued(routed, value) : undefined,
  };
}

function reasonNotToSend({ total }: AttemptClocks, now: number, client: ClientSignal): Failure | undefined {
  if (client.aborted) return clientAbort();
  return total !== undefined && now >= total.at ? timeIsUp(totalTimeout(total.timeoutMs)) : undefined;
}

/** An attempt that came to nothing before anything was sent. */
export function rejectedUnsent(failure: Failure, durationMs: number): AttemptRejected {
  return { type: "rejected", failure, headers: undefined, durationMs, holdMs: 0, usage: undefined };
}

function toldFailure(deps: FallbackDeps, { failure, headers }: AttemptRejected, record: AttemptRecord): Failure {
  if (failure.kind === "total-timeout") return timeIsUp(failure);
  const clean = record.clean(failure);
  return headers === undefined ? clean : withRetryHeaders(clean, headers, deps.health.now());
}

/**
 * The time of one target is up: its share, or its own total timeout. Whether another still has time is the plan's to know,
 * and no matter of status lists.
 */
function timeIsUp(failure: Failure): Failure {
  return { ...failure, alwaysFallBack: true };
}
