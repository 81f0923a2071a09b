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
  /**
   * Exactly once, but for a bug.
   *
   * @param clientCredential the request carried the client's own credential
   */
  onResult(record: AttemptRecord, result: AttemptResult, clientCredential: boolean): void;
  /** Thrown where nobody waits. */
  onBug(bug: unknown): void;
}

/** Ends in a result, whatever the target does. What it throws is a bug. */
export function runAttempt(
  deps: FallbackDeps,
  facts: RunFacts,
  step: AttemptStep,
  record: AttemptRecord,
  runner: Runner,
): void {
  const { clock } = deps;
  const startedAt = clock.now();
  record.start(step.retry);
  const request = targetRequest(facts, record.routed, clock, record.traceHeaders());
  const onBug = (bug: unknown): void => runner.onBug(bug);
  const send = (made: TargetRequest | Failure): void => {
    const { anotherTarget } = step;
    const attempt = { startedAt, anotherTarget };
    const clocks = attemptClocks(record.routed.target.timeouts, deps.config.gate, facts.clocks, attempt);
    const unsent = reasonNotToSend(clocks, clock.now(), facts.signal) ?? runner.stopped ?? unmade(made);
    if (unsent !== undefined) return runner.onResult(record, rejectedUnsent(unsent, clock.now() - startedAt), false);
    const { upstream, credentials, clientCredential } = made as TargetRequest;
    record.keep(credentials);
    const spec = attemptSpec(deps, facts, step, record, clocks, startedAt);
    const { attempt: sent, result } = Attempt.run(spec, upstream, deps.client, clock, record);
    runner.sent(sent);
    result
      .then((outcome) => {
        if (outcome.type === "released") return runner.onResult(record, outcome, clientCredential);
        const failure = toldFailure(deps, outcome, record);
        runner.onResult(record, { ...outcome, failure }, clientCredential);
      })
      .catch(onBug);
  };
  if (request instanceof Promise) request.then(send).catch(onBug);
  else send(request);
}

function unmade(request: TargetRequest | Failure): Failure | undefined {
  return isFailure(request) ? request : undefined;
}

function attemptSpec(
  { config, router, health }: FallbackDeps,
  facts: RunFacts,
  { anotherTarget }: AttemptStep,
  record: AttemptRecord,
  clocks: AttemptClocks,
  startedAt: number,
): AttemptSpec {
  const { protocol, answersToolResult } = facts;
  const { routed } = record;
  const { requireTerminal } = routed.target.provider;
  const { ttftTimeoutMs } = clocks;
  const known = { ttftTimeoutMs, anotherTarget, answersToolResult, requireTerminal };
  return {
    startedAt,
    protocol,
    rules: facts.gated ? gateRules(protocol, config.gate, known) : undefined,
    clocks,
    maxHeldBytes: config.gate.maxHeldBytes,
    onMidStreamFailure: config.onMidStreamFailure ?? protocol.onMidStreamFailure,
    detached: facts.detached,
    readUsage: record.observed || health.measures,
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
