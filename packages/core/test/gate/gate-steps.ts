/** Inputs of the gate's machine, what they may lead to, and a list in for a list out. */

import { expect } from "vitest";
import type { Failure } from "../../src/errors.js";
import { Gate, type GateDeadline, type GateInput, type GateOutput, type GateRules } from "../../src/gate/gate.js";
import type { FailureVerdict, TerminalVerdict, Verdict } from "../../src/gate/verdict.js";

export const rules: GateRules = {
  validation: "full",
  alwaysReportsUsage: true,
  emptyCompletion: "auto",
  anotherTarget: false,
  answersToolResult: false,
  maxLifecycleEvents: 4,
  maxHeldEvents: 256,
  onOverflow: "release",
  requireTerminal: true,
};

export function frame(verdict: Verdict): GateInput {
  return { type: "frame", verdict };
}
export function trailing(verdict: Verdict): GateInput {
  return { type: "frame", verdict, trailing: true };
}
export function deadline(name: GateDeadline, timeoutMs = 30_000): GateInput {
  return { type: "deadline", deadline: name, timeoutMs };
}
export function failed(failure: Partial<Failure> = {}, fields: Partial<FailureVerdict> = {}): FailureVerdict {
  const whole: Failure = {
    kind: "in-band",
    status: 500,
    code: "server_error",
    message: "no",
    retryable: true,
    ...failure,
  };
  return { kind: "failure", failure: whole, ...fields };
}
export function terminal(fields: Partial<TerminalVerdict> = {}): TerminalVerdict {
  return { kind: "terminal", final: false, complete: false, ...fields };
}

export const bytes: GateInput = { type: "bytes" };
export const foreign: GateInput = { type: "foreign" };
export const limit: GateInput = { type: "limit" };
export const blind: GateInput = { type: "blind" };
export const end: GateInput = { type: "end" };
export const reset: GateInput = { type: "error", cause: new Error("reset") };
export const stop = terminal({ reason: "end_turn", outputTokens: 3 });
export const last = terminal({ final: true, complete: true });
export const failure = failed();
export const unexplained = failed({ kind: "unexplained", status: 502, code: "response_failed" }, { unexplained: true });
export const overload = failed({ status: 503, code: "overloaded_error", type: "overloaded_error" });

/** A list in, a list out. */
export function run(inputs: readonly GateInput[], given: Partial<GateRules> = {}): GateOutput[] {
  const gate = new Gate({ ...rules, ...given });
  return inputs.map((input) => gate.step(input));
}
/** What the last input led to. */
export function after(inputs: readonly GateInput[], given: Partial<GateRules> = {}): GateOutput | undefined {
  return run(inputs, given).at(-1);
}
export function rejection(fields: Partial<Failure>): object {
  return { type: "reject", failure: expect.objectContaining(fields) };
}
export function times(count: number, input: GateInput): GateInput[] {
  return Array.from({ length: count }, () => input);
}

export const hold = { type: "hold" };
export const forward = { type: "forward" };
export const ignore = { type: "ignore" };
export const released = { type: "release", reason: "output" };
export const empty = { type: "release", reason: "empty" };
export const ungated = { type: "release", reason: "ungated" };
export const noDetail = rejection({
  kind: "unexplained",
  status: 502,
  code: "response_failed",
  message: "Provider reported a failure in the response stream without a reason",
});
