/**
 * The gate's state machine. It decides, for one attempt, what becomes of a stream whose frames have been judged.
 *
 * | phase           | lifecycle, neutral      | output              | terminal, no output    | failure                | end                        | error        | deadline                | hold limit          |
 * | --------------- | ----------------------- | ------------------- | ---------------------- | ---------------------- | -------------------------- | ------------ | ----------------------- | ------------------- |
 * | holding         | hold; release at a limit| release → committed | by policy              | reject; or await detail| reject (last event first)  | reject       | reject                  | release → committed |
 * | awaiting-detail | keepalive: hold; else reject | reject         | reject                 | reject with the detail | reject                     | reject       | reject                  | reject              |
 * | committed       | forward                 | forward             | forward, complete      | forward, record once   | finish, or fail            | fail         | idle, request: fail     | ignore              |
 * | closed          | ignore                  | ignore              | ignore                 | ignore                 | ignore                     | ignore       | ignore                  | ignore              |
 *
 * `reject` is before commit: the next target may be tried. `fail` is after: nothing can be retried. One input, one output
 * per step. No clock, no timer, no I/O: the drivers bring those.
 */

import type { Failure } from "../errors.js";
import * as failures from "./failures.js";
import type { TerminalVerdict, Verdict } from "./verdict.js";

export type EmptyCompletionPolicy = "auto" | "release" | "fallback" | "fail";

/** What the machine must know of the request, the target and the configuration. Fixed for one attempt. */
export interface GateRules {
  /**
   * `full`: held to the first output. `overload`: held to the first event, which is judged for an Anthropic overload
   * only. `first-event` and `first-byte`: validation is off, released at that point.
   */
  readonly validation: "full" | "overload" | "first-event" | "first-byte";
  /** Set when a TTFT timeout is armed, in ms. */
  readonly ttftTimeoutMs?: number | undefined;
  /** A stream that ends empty is a 502 even under a TTFT timeout, with this message (native Responses calls). */
  readonly noOutputMessage?: string | undefined;
  /** Usage is always reported: absent usage counts as zero. */
  readonly alwaysReportsUsage: boolean;
  readonly emptyCompletion: EmptyCompletionPolicy;
  /** Another target may be tried after this one. */
  readonly anotherTarget: boolean;
  /** The request's last message is a tool result: an empty answer to it is normal. */
  readonly answersToolResult: boolean;
  readonly maxLifecycleEvents: number;
  readonly maxHeldEvents: number;
  readonly onOverflow: "release" | "fail";
  /** After release: a clean end without a terminal is a failure. */
  readonly requireTerminal: boolean;
}

export type GateDeadline = "ttft" | "request" | "idle" | "total" | "hold" | "detail";

export type GateInput =
  /** `trailing`: the unterminated last event of a stream that ended, to be judged for a failure only. */
  | { readonly type: "frame"; readonly verdict: Verdict; readonly trailing?: boolean }
  /** Bytes that are not a frame yet: only counts where validation is off. */
  | { readonly type: "bytes" }
  /** The body is neither a stream nor JSON of the protocol. */
  | { readonly type: "foreign" }
  /** `gate.maxHeldBytes` is exceeded. */
  | { readonly type: "limit" }
  /** After release: a frame was too large to be read, so completeness cannot be told any more. */
  | { readonly type: "blind" }
  | { readonly type: "end" }
  | { readonly type: "error"; readonly cause: unknown }
  | { readonly type: "deadline"; readonly deadline: GateDeadline; readonly timeoutMs: number };

export type ReleaseReason = "output" | "outcome" | "empty" | "overflow" | "ungated";
export type OverflowLimit = "bytes" | "events" | "time" | "lifecycle";

export type GateOutput =
  | { readonly type: "hold" }
  /** `record`: the frame that released was an in-band failure, passed on because validation is off. */
  | {
      readonly type: "release";
      readonly reason: ReleaseReason;
      readonly overflow?: OverflowLimit;
      readonly record?: Failure;
    }
  | { readonly type: "forward"; readonly record?: Failure }
  | { readonly type: "finish"; readonly complete: boolean }
  | { readonly type: "reject"; readonly failure: Failure; readonly overflow?: OverflowLimit }
  /** `append`: an error event may be written first. Never after an in-band error was passed on. */
  | { readonly type: "fail"; readonly failure: Failure; readonly append: boolean }
  | { readonly type: "ignore" };

export type GatePhase = "holding" | "awaiting-detail" | "committed" | "closed";

type GateState =
  | { readonly phase: "holding"; readonly seen: Seen }
  | { readonly phase: "awaiting-detail" }
  | {
      readonly phase: "committed";
      readonly complete: boolean;
      readonly blind: boolean;
      readonly recorded: Failure | undefined;
    }
  | { readonly phase: "closed" };

/** What has been held so far, as far as a later judgement needs it. */
interface Seen {
  /** Events of any kind but comments. */
  events: number;
  lifecycle: number;
  /** Events that count toward `maxHeldEvents`: no keepalives. */
  counted: number;
  malformed: boolean;
  foreign: boolean;
  terminal: boolean;
  complete: boolean;
  reason: string | undefined;
  outputTokens: number | undefined;
}

const hold: GateOutput = { type: "hold" };
const forward: GateOutput = { type: "forward" };
const ignore: GateOutput = { type: "ignore" };

/** Finish reasons that say no more than "done". Every other one is an outcome that the client has to see. */
const plainStops = new Set(["stop", "end_turn", "stop_sequence", "STOP", "completed"]);

export class Gate {
  readonly #rules: GateRules;
  #state: GateState = {
    phase: "holding",
    seen: {
      events: 0,
      lifecycle: 0,
      counted: 0,
      malformed: false,
      foreign: false,
      terminal: false,
      complete: false,
      reason: undefined,
      outputTokens: undefined,
    },
  };

  constructor(rules: GateRules) {
    this.#rules = rules;
  }

  get phase(): GatePhase {
    return this.#state.phase;
  }
  /** Holding, and at least one event is held: comments and white space are none. */
  get holdsEvent(): boolean {
    return this.#state.phase === "holding" && this.#state.seen.events > 0;
  }
  /** Committed, and the protocol's end has been seen: what follows is usage and the like. */
  get complete(): boolean {
    return this.#state.phase === "committed" && this.#state.complete;
  }

  step(input: GateInput): GateOutput {
    switch (this.#state.phase) {
      case "holding":
        return this.#holding(input, this.#state.seen);
      case "awaiting-detail":
        return this.#awaitingDetail(input);
      case "committed":
        return this.#committed(input, this.#state);
      case "closed":
        return ignore;
    }
  }

  /** The reader or the client is gone: nothing that still arrives matters. */
  close(): void {
    this.#state = { phase: "closed" };
  }

  #holding(input: GateInput, seen: Seen): GateOutput {
    switch (input.type) {
      case "frame":
        if (input.trailing === true) return this.#holdingTrailing(input.verdict);
        seen.events += 1;
        return this.#holdingFrame(input.verdict, seen);
      case "bytes":
        return this.#rules.validation === "first-byte" ? this.#release("ungated") : hold;
      case "foreign":
        return this.#rules.validation === "full" ? this.#reject(failures.invalidBody()) : this.#release("ungated");
      case "blind":
        return ignore;
      case "limit":
        return this.#overflow("bytes");
      case "end":
        return this.#holdingEnd(seen);
      case "error":
        return this.#reject(
          seen.events === 0
            ? failures.emptyStream(this.#rules.noOutputMessage)
            : failures.truncatedStream(this.#rules.noOutputMessage),
          input.cause,
        );
      case "deadline":
        if (input.deadline === "hold") return this.#overflow("time");
        if (input.deadline === "detail") return ignore;
        return this.#reject(deadlineFailure(input.deadline, input.timeoutMs));
    }
  }

  #holdingFrame(verdict: Verdict, seen: Seen): GateOutput {
    if (completes(verdict)) seen.complete = true;
    if (this.#rules.validation !== "full") return this.#holdingUnvalidated(verdict);
    switch (verdict.kind) {
      case "output":
        return this.#release("output");
      case "failure":
        if (verdict.unexplained !== true) return this.#reject(verdict.failure);
        this.#state = { phase: "awaiting-detail" };
        return hold;
      case "terminal":
        return this.#holdingTerminal(verdict, seen);
      case "lifecycle":
        seen.lifecycle += 1;
        return seen.lifecycle > this.#rules.maxLifecycleEvents
          ? this.#release("overflow", "lifecycle")
          : this.#count(seen);
      case "neutral":
        if (verdict.malformed === true) seen.malformed = true;
        if (verdict.foreign === true) seen.foreign = true;
        return verdict.keepalive === true ? hold : this.#count(seen);
    }
  }

  /** The first event of a stream that is not validated. */
  #holdingUnvalidated(verdict: Verdict): GateOutput {
    if (verdict.kind !== "failure") return this.#release("ungated");
    const { failure } = verdict;
    if (this.#rules.validation === "overload" && isOverload(failure)) return this.#reject(failure);
    return { ...this.#release("ungated", undefined, failure), record: failure };
  }

  #count(seen: Seen): GateOutput {
    seen.counted += 1;
    return seen.counted > this.#rules.maxHeldEvents ? this.#overflow("events") : hold;
  }

  #holdingTerminal(verdict: TerminalVerdict, seen: Seen): GateOutput {
    if (verdict.reason !== undefined && !plainStops.has(verdict.reason)) return this.#release("outcome");
    seen.reason ??= verdict.reason;
    seen.outputTokens = verdict.outputTokens ?? seen.outputTokens;
    if (verdict.final || verdict.reason !== undefined) seen.terminal = true;
    return verdict.final ? this.#judgeEmpty(seen) : this.#count(seen);
  }

  /** A terminal came, and no output before it. */
  #judgeEmpty(seen: Seen): GateOutput {
    const { emptyCompletion, anotherTarget, answersToolResult, alwaysReportsUsage } = this.#rules;
    switch (emptyCompletion) {
      case "release":
        return this.#release("empty");
      case "fail":
        return this.#reject(failures.emptyCompletion({ alwaysFallBack: false }));
      case "fallback":
        return anotherTarget
          ? this.#reject(failures.emptyCompletion({ alwaysFallBack: true }))
          : this.#release("empty");
      case "auto":
    }
    const billed = (seen.outputTokens ?? (alwaysReportsUsage ? 0 : 1)) > 0;
    if (seen.reason === undefined || !billed) return this.#reject(failures.emptyCompletion({ alwaysFallBack: false }));
    if (answersToolResult || !anotherTarget) return this.#release("empty");
    return this.#reject(failures.emptyCompletion({ alwaysFallBack: true }));
  }

  #holdingTrailing(verdict: Verdict): GateOutput {
    if (verdict.kind !== "failure") return hold;
    if (this.#rules.validation === "full" || (this.#rules.validation === "overload" && isOverload(verdict.failure))) {
      return this.#reject(verdict.failure);
    }
    return hold;
  }

  #holdingEnd(seen: Seen): GateOutput {
    const { ttftTimeoutMs, noOutputMessage } = this.#rules;
    if (seen.terminal) return this.#judgeEmpty(seen);
    if (seen.events === 0) {
      if (ttftTimeoutMs !== undefined && noOutputMessage === undefined)
        return this.#reject(failures.ttftEmptyStream(ttftTimeoutMs));
      return this.#reject(failures.emptyStream(noOutputMessage));
    }
    if (seen.foreign) return this.#reject(failures.invalidBody());
    return this.#reject(seen.malformed ? failures.malformedEvent() : failures.truncatedStream(noOutputMessage));
  }

  #awaitingDetail(input: GateInput): GateOutput {
    if (input.type === "bytes") return hold;
    if (input.type === "frame") {
      const { verdict } = input;
      if (verdict.kind === "neutral" && verdict.keepalive === true) return hold;
      if (verdict.kind === "failure" && verdict.unexplained !== true && verdict.saysNothing !== true)
        return this.#reject(verdict.failure);
    }
    return this.#reject(failures.unexplainedFailure());
  }

  #committed(input: GateInput, state: GateState & { phase: "committed" }): GateOutput {
    switch (input.type) {
      case "bytes":
        return forward;
      case "frame":
        return this.#committedFrame(input.verdict, state);
      case "end":
        this.close();
        if (state.complete || state.recorded !== undefined) return { type: "finish", complete: state.complete };
        if (!this.#rules.requireTerminal || state.blind) return { type: "finish", complete: false };
        return { type: "fail", failure: failures.truncatedStream(undefined), append: true };
      case "error":
        this.close();
        // A reset after the terminal event loses nothing the client needs.
        if (state.complete) return { type: "finish", complete: true };
        return {
          type: "fail",
          failure: state.recorded ?? failures.networkFailure(input.cause, true),
          append: state.recorded === undefined,
        };
      case "deadline":
        if (input.deadline !== "idle" && input.deadline !== "request") return ignore;
        this.close();
        if (state.complete) return { type: "finish", complete: true };
        return {
          type: "fail",
          failure: state.recorded ?? deadlineFailure(input.deadline, input.timeoutMs),
          append: state.recorded === undefined,
        };
      case "blind":
        this.#state = { ...state, blind: true };
        return forward;
      case "foreign":
      case "limit":
        return ignore;
    }
  }

  #committedFrame(verdict: Verdict, state: GateState & { phase: "committed" }): GateOutput {
    const complete = state.complete || completes(verdict);
    const news = verdict.kind === "failure" && state.recorded === undefined ? verdict.failure : undefined;
    if (complete !== state.complete || news !== undefined)
      this.#state = { ...state, complete, recorded: state.recorded ?? news };
    return news === undefined ? forward : { type: "forward", record: news };
  }

  #release(reason: ReleaseReason, overflow?: OverflowLimit, recorded?: Failure): GateOutput & { type: "release" } {
    const complete = this.#state.phase === "holding" && this.#state.seen.complete;
    this.#state = { phase: "committed", complete, blind: false, recorded };
    return overflow === undefined ? { type: "release", reason } : { type: "release", reason, overflow };
  }

  #reject(failure: Failure, cause?: unknown): GateOutput {
    this.#state = { phase: "closed" };
    return { type: "reject", failure: cause === undefined ? failure : { ...failure, cause } };
  }

  #overflow(limit: "bytes" | "events" | "time"): GateOutput {
    if (limit === "time" || this.#rules.onOverflow === "release") return this.#release("overflow", limit);
    this.#state = { phase: "closed" };
    return { type: "reject", failure: failures.gateOverflow(limit), overflow: limit };
  }
}

function completes(verdict: Verdict): boolean {
  return (
    (verdict.kind === "output" || verdict.kind === "terminal" || verdict.kind === "failure") &&
    verdict.complete === true
  );
}

function isOverload(failure: Failure): boolean {
  return failure.code === "overloaded_error" || failure.type === "overloaded_error";
}

/** The failure of a clock that ran out. */
export function deadlineFailure(deadline: GateDeadline, timeoutMs: number): Failure {
  switch (deadline) {
    case "ttft":
      return failures.ttftTimeout(timeoutMs);
    case "idle":
      return failures.idleTimeout(timeoutMs);
    case "total":
      return failures.totalTimeout(timeoutMs);
    default:
      return failures.requestTimeout(timeoutMs);
  }
}
