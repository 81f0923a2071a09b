import { describe, expect, it } from "vitest";
import type { GateRules } from "../../src/gate/gate.js";
import { keepalive, lifecycle, output, type TerminalVerdict } from "../../src/gate/verdict.js";
import {
  after,
  bytes,
  deadline,
  empty,
  end,
  forward,
  frame,
  hold,
  last,
  rejection,
  released,
  run,
  stop,
  terminal,
} from "./gate-steps.js";

describe("a TTFT timeout", () => {
  const armed = { ttftTimeoutMs: 30_000 };
  const noOutputMessage = "Provider closed the response stream before producing any output";

  it("has its own words for silence and for a stream that ends empty", () => {
    expect(after([deadline("ttft", 250)])).toEqual(
      rejection({ message: "TTFT timeout: no first chunk received (timeout=250ms)" }),
    );
    const ended = rejection({
      status: 408,
      alwaysFallBack: true,
      message: "TTFT timeout: stream ended before first chunk (timeout=30000ms)",
    });
    expect(after([bytes, end], armed)).toEqual(ended);
  });

  it("makes no 408 of a stream that ends after events", () => {
    expect(after([frame(keepalive), end], armed)).toEqual(rejection({ status: 502, kind: "truncated-stream" }));
  });

  it("makes no 408 of an empty Responses stream", () => {
    const given = { ...armed, noOutputMessage };
    expect(after([end], given)).toEqual(rejection({ status: 502, kind: "empty-stream", message: noOutputMessage }));
    expect(after([frame(lifecycle), end], given)).toEqual(
      rejection({ status: 502, kind: "truncated-stream", message: noOutputMessage }),
    );
  });
});

describe("a terminal without output", () => {
  const zero = terminal({ reason: "stop", outputTokens: 0 });
  const silent = terminal({ reason: "stop" });

  it.each(["stop", "end_turn", "stop_sequence", "STOP", "completed"])("%s is a plain stop", (reason) => {
    expect(run([frame(terminal({ reason, outputTokens: 2 })), frame(last)])).toEqual([hold, empty]);
  });

  it.each([
    "length",
    "max_tokens",
    "refusal",
    "content_filter",
    "SAFETY",
    "tool_calls",
    "pause_turn",
    "incomplete:stop",
    "Stop",
  ])("%s is an outcome, released at once", (reason) => {
    expect(run([frame(terminal({ reason }))], { emptyCompletion: "fail" })).toEqual([
      { type: "release", reason: "outcome" },
    ]);
  });

  it.each<[string, readonly TerminalVerdict[], Partial<GateRules>, object]>([
    ["no usage, always reported", [silent], {}, rejection({ kind: "empty-completion" })],
    ["no usage, reported on request only", [silent], { alwaysReportsUsage: false }, empty],
    ["usage of zero", [zero], { alwaysReportsUsage: false }, rejection({ kind: "empty-completion" })],
    [
      "usage that follows the reason",
      [silent, terminal({ outputTokens: 0 })],
      { alwaysReportsUsage: false },
      rejection({}),
    ],
    ["the later usage", [terminal({ outputTokens: 0 }), stop], {}, empty],
    ["no finish reason, though billed", [terminal({ outputTokens: 9 })], {}, rejection({ kind: "empty-completion" })],
    ["billed", [stop], {}, empty],
    [
      "billed, another target left",
      [stop],
      { anotherTarget: true },
      rejection({ kind: "empty-completion", alwaysFallBack: true }),
    ],
    ["billed, in answer to a tool result", [stop], { anotherTarget: true, answersToolResult: true }, empty],
    ["unbilled, in answer to a tool result", [zero], { answersToolResult: true }, rejection({})],
  ])("is judged at the last event and at the end alike: %s", (_name, verdicts, given, expected) => {
    expect(after([...verdicts.map(frame), frame(last)], given)).toEqual(expected);
    if (verdicts.some((verdict) => verdict.reason !== undefined))
      expect(after([...verdicts.map(frame), end], given)).toEqual(expected);
  });

  it("does not fall back by force where it was not billed", () => {
    const [, rejected] = run([frame(zero), frame(last)], { anotherTarget: true });
    expect(rejected).not.toMatchObject({ failure: { alwaysFallBack: true } });
  });

  it("that is usage alone does not end a stream", () => {
    expect(after([frame(terminal({ outputTokens: 4 })), end])).toEqual(rejection({ kind: "truncated-stream" }));
  });

  it.each<[GateRules["emptyCompletion"], boolean, object]>([
    ["release", true, empty],
    ["fallback", true, rejection({ kind: "empty-completion", alwaysFallBack: true })],
    ["fallback", false, empty],
    ["fail", false, rejection({ kind: "empty-completion" })],
    ["fail", true, rejection({ kind: "empty-completion" })],
  ])("goes by the policy %s, another target: %s", (emptyCompletion, anotherTarget, expected) => {
    for (const verdict of [stop, zero, terminal()]) {
      const given = { emptyCompletion, anotherTarget, answersToolResult: true };
      expect(after([frame(verdict), frame(last)], given)).toEqual(expected);
    }
  });

  it("is forgotten once output comes", () => {
    expect(run([frame(zero), frame(output), frame(last), end])).toEqual([
      hold,
      released,
      forward,
      { type: "finish", complete: true },
    ]);
  });
});
