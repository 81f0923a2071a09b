import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Gate, type GateDeadline, type GateOutput, type GateRules } from "../../src/gate/gate.js";
import { completeOutput, keepalive, lifecycle, malformed, neutral, output } from "../../src/gate/verdict.js";
import {
  blind,
  bytes,
  deadline,
  end,
  failure,
  foreign,
  frame,
  last,
  limit,
  overload,
  reset,
  stop,
  terminal,
  trailing,
  unexplained,
} from "./gate-steps.js";

const verdicts = [
  output,
  completeOutput,
  lifecycle,
  neutral,
  keepalive,
  malformed,
  stop,
  last,
  failure,
  unexplained,
  overload,
  terminal({ reason: "length", complete: true }),
];
const deadlines: readonly GateDeadline[] = ["ttft", "request", "idle", "total", "hold", "detail"];
const anyInput = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(fc.constantFrom(...verdicts), fc.boolean())
      .map(([verdict, late]) => (late ? trailing(verdict) : frame(verdict))),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(bytes, foreign, limit, blind, end, reset, ...deadlines.map((name) => deadline(name))),
  },
);
const anyRules: fc.Arbitrary<GateRules> = fc.record({
  validation: fc.constantFrom("full", "full", "overload", "first-event", "first-byte"),
  ttftTimeoutMs: fc.constantFrom(undefined, 5),
  noOutputMessage: fc.constantFrom(undefined, "none"),
  alwaysReportsUsage: fc.boolean(),
  emptyCompletion: fc.constantFrom("auto", "release", "fallback", "fail"),
  anotherTarget: fc.boolean(),
  answersToolResult: fc.boolean(),
  maxLifecycleEvents: fc.nat(4),
  maxHeldEvents: fc.integer({ min: 1, max: 6 }),
  onOverflow: fc.constantFrom("release", "fail"),
  requireTerminal: fc.boolean(),
});

/** What holds of any list of outputs. */
function expectLawful(outputs: readonly GateOutput[]): void {
  const types = outputs.map((step) => step.type);
  const decisions = types.filter((type) => type === "release" || type === "reject");
  const ends = types.filter((type) => type === "finish" || type === "fail");
  expect(decisions.length).toBeLessThanOrEqual(1);
  expect(ends.length).toBeLessThanOrEqual(1);
  const release = types.indexOf("release");
  const before = release === -1 ? types : types.slice(0, release);
  expect(before.some((type) => type === "forward" || type === "finish" || type === "fail")).toBe(false);
  if (release !== -1) expect(types.slice(release + 1).some((type) => type === "hold" || type === "reject")).toBe(false);
  const closing = types.findIndex((type) => type === "reject" || type === "finish" || type === "fail");
  if (closing !== -1) expect(types.slice(closing + 1).every((type) => type === "ignore")).toBe(true);
  const records = outputs.filter(
    (step) => (step.type === "forward" || step.type === "release") && step.record !== undefined,
  );
  expect(records.length).toBeLessThanOrEqual(1);
  const broken = outputs.find((step) => step.type === "fail");
  if (broken?.type === "fail") expect(broken.append).toBe(records.length === 0);
}

describe("any list of inputs", () => {
  it("decides at most once, ends at most once, and is silent after", () => {
    fc.assert(
      fc.property(anyRules, fc.array(anyInput, { maxLength: 24 }), (given, inputs) => {
        const gate = new Gate(given);
        const outputs = inputs.map((input) => gate.step(input));
        expectLawful(outputs);
      }),
      { numRuns: 5_000 },
    );
  });

  it("is decided by its end, and over after a second one", () => {
    fc.assert(
      fc.property(anyRules, fc.array(anyInput, { maxLength: 12 }), (given, inputs) => {
        const gate = new Gate(given);
        for (const input of [...inputs, end, end]) gate.step(input);
        expect(gate.phase).toBe("closed");
      }),
      { numRuns: 2_000 },
    );
  });
});
