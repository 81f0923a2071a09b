import { describe, expect, it } from "vitest";
import { Gate, type GateInput } from "../../src/gate/gate.js";
import { completeOutput, keepalive, lifecycle, malformed, neutral, output } from "../../src/gate/verdict.js";
import {
  after,
  blind,
  bytes,
  deadline,
  end,
  failed,
  failure,
  foreign,
  forward,
  frame,
  hold,
  ignore,
  last,
  limit,
  noDetail,
  overload,
  rejection,
  released,
  reset,
  rules,
  run,
  stop,
  terminal,
  times,
  trailing,
  unexplained,
  ungated,
} from "./gate-steps.js";

describe("holding", () => {
  it.each<[string, GateInput, object]>([
    ["lifecycle", frame(lifecycle), hold],
    ["neutral", frame(neutral), hold],
    ["keepalive", frame(keepalive), hold],
    ["malformed", frame(malformed), hold],
    ["bytes", bytes, hold],
    ["blind", blind, ignore],
    ["output", frame(output), released],
    ["a whole answer", frame(completeOutput), released],
    ["an outcome", frame(terminal({ reason: "max_tokens" })), { type: "release", reason: "outcome" }],
    ["a plain stop", frame(stop), hold],
    ["usage", frame(terminal({ outputTokens: 0 })), hold],
    [
      "the last event",
      frame(last),
      rejection({ kind: "empty-completion", status: 502, code: "upstream_empty_completion" }),
    ],
    ["failure", frame(failure), rejection({ status: 500, code: "server_error" })],
    ["failure without a reason", frame(unexplained), hold],
    ["foreign", foreign, rejection({ kind: "invalid-body", status: 502, code: "upstream_invalid_body" })],
    ["limit", limit, { type: "release", reason: "overflow", overflow: "bytes" }],
    ["end", end, rejection({ kind: "empty-stream", status: 502, code: "upstream_empty_stream" })],
    [
      "error",
      reset,
      rejection({ kind: "empty-stream", status: 502, cause: reset.type === "error" ? reset.cause : undefined }),
    ],
    [
      "TTFT deadline",
      deadline("ttft"),
      rejection({ kind: "ttft-timeout", status: 408, code: "ttft_timeout", alwaysFallBack: true }),
    ],
    ["request deadline", deadline("request"), rejection({ kind: "request-timeout", status: 408 })],
    ["idle deadline", deadline("idle"), rejection({ kind: "idle-timeout", status: 504 })],
    ["total deadline", deadline("total"), rejection({ kind: "total-timeout", status: 408 })],
    ["hold limit", deadline("hold"), { type: "release", reason: "overflow", overflow: "time" }],
    ["detail deadline of a wait that is over", deadline("detail"), ignore],
    ["trailing failure", trailing(failure), rejection({ code: "server_error" })],
    ["trailing output", trailing(output), hold],
    ["trailing last event", trailing(last), hold],
  ])("%s", (_name, input, expected) => {
    expect(run([input])).toEqual([expected]);
  });

  it("is over after a rejection", () => {
    expect(run([frame(failure), frame(output), end])).toEqual([rejection({}), ignore, ignore]);
  });

  it("tells a truncated stream from an empty one and from one that ends malformed", () => {
    expect(after([frame(neutral), end])).toEqual(
      rejection({ kind: "truncated-stream", code: "upstream_truncated_stream" }),
    );
    expect(after([frame(neutral), reset])).toEqual(rejection({ kind: "truncated-stream" }));
    expect(after([frame(malformed), frame(neutral), end])).toEqual(
      rejection({ kind: "malformed-event", code: "upstream_malformed_event" }),
    );
  });

  it("releases at the fifth lifecycle event, whatever neutral ones lie between", () => {
    const inputs = times(4, frame(lifecycle)).flatMap((input) => [input, frame(neutral), frame(keepalive)]);
    expect(run(inputs).every((step) => step.type === "hold")).toBe(true);
    expect(after([...inputs, frame(lifecycle)], { onOverflow: "fail" })).toEqual({
      type: "release",
      reason: "overflow",
      overflow: "lifecycle",
    });
  });

  it("holds no lifecycle event where none may be held", () => {
    expect(after([frame(lifecycle)], { maxLifecycleEvents: 0 })).toMatchObject({ overflow: "lifecycle" });
  });

  it("releases at the 257th event, and counts no keepalive", () => {
    const mixed = [frame(neutral), frame(malformed), frame(lifecycle), frame(terminal({ outputTokens: 1 }))];
    const held = [...mixed, ...times(252, frame(neutral)), ...times(500, frame(keepalive))];
    expect(run(held).every((step) => step.type === "hold")).toBe(true);
    expect(after([...held, frame(neutral)])).toEqual({ type: "release", reason: "overflow", overflow: "events" });
  });

  it.each<[string, readonly GateInput[]]>([
    ["bytes", [limit]],
    ["events", times(257, frame(neutral))],
  ])("rejects at the limit on %s where overflow fails", (which, inputs) => {
    const expected = { type: "reject", overflow: which, failure: { kind: "gate-overflow", status: 502 } };
    expect(after(inputs, { onOverflow: "fail" })).toMatchObject(expected);
  });

  it("releases when it has held long enough, even where overflow fails", () => {
    expect(after([deadline("hold")], { onOverflow: "fail" })).toMatchObject({ type: "release", overflow: "time" });
  });
});

describe("awaiting detail", () => {
  const wait = [frame(lifecycle), frame(unexplained)];

  it.each<[string, GateInput, object]>([
    ["keepalive", frame(keepalive), hold],
    ["bytes", bytes, hold],
    ["detail", frame(failure), rejection({ code: "server_error", status: 500 })],
    ["trailing detail", trailing(failure), rejection({ code: "server_error" })],
    ["lifecycle", frame(lifecycle), noDetail],
    ["neutral", frame(neutral), noDetail],
    ["malformed", frame(malformed), noDetail],
    ["output", frame(output), noDetail],
    ["terminal", frame(last), noDetail],
    ["another one without a reason", frame(unexplained), noDetail],
    ["foreign", foreign, noDetail],
    ["limit", limit, noDetail],
    ["end", end, noDetail],
    ["error", reset, noDetail],
    ["detail deadline", deadline("detail"), noDetail],
    ["TTFT deadline", deadline("ttft"), noDetail],
    ["request deadline", deadline("request"), noDetail],
    ["idle deadline", deadline("idle"), noDetail],
    ["total deadline", deadline("total"), noDetail],
    ["hold limit", deadline("hold"), noDetail],
  ])("%s", (_name, input, expected) => {
    expect(after([...wait, input])).toEqual(expected);
  });

  it("is over after one more frame, and waits through any number of keepalives", () => {
    expect(after([...wait, ...times(300, frame(keepalive)), frame(failure)])).toEqual(
      rejection({ code: "server_error" }),
    );
    expect(after([...wait, frame(neutral), frame(failure)])).toEqual(ignore);
  });
});

describe("committed", () => {
  const truncated = {
    type: "fail",
    failure: expect.objectContaining({ kind: "truncated-stream", code: "upstream_truncated_stream" }),
    append: true,
  };

  it.each<[string, GateInput, object]>([
    ["lifecycle", frame(lifecycle), forward],
    ["neutral", frame(neutral), forward],
    ["output", frame(output), forward],
    ["terminal", frame(last), forward],
    ["bytes", bytes, forward],
    ["blind", blind, forward],
    ["failure", frame(failure), { type: "forward", record: failure.failure }],
    ["failure without a reason", frame(unexplained), { type: "forward", record: unexplained.failure }],
    ["end", end, truncated],
    [
      "error",
      reset,
      { type: "fail", failure: expect.objectContaining({ kind: "network", status: 502 }), append: true },
    ],
    [
      "idle deadline",
      deadline("idle"),
      { type: "fail", failure: expect.objectContaining({ kind: "idle-timeout" }), append: true },
    ],
    [
      "request deadline",
      deadline("request"),
      { type: "fail", failure: expect.objectContaining({ kind: "request-timeout" }), append: true },
    ],
    ["TTFT deadline", deadline("ttft"), ignore],
    ["total deadline", deadline("total"), ignore],
    ["detail deadline", deadline("detail"), ignore],
    ["hold limit", deadline("hold"), ignore],
    ["limit", limit, ignore],
    ["foreign", foreign, ignore],
  ])("%s", (_name, input, expected) => {
    expect(after([frame(output), input])).toEqual(expected);
  });

  it.each<[string, readonly GateInput[]]>([
    ["a last event", [frame(output), frame(last)]],
    ["output with a finish reason", [frame(output), frame(completeOutput)]],
    ["a whole answer, which released it", [frame(completeOutput)]],
    ["an outcome, which released it", [frame(terminal({ reason: "length", complete: true }))]],
    ["a finish reason that was held", [frame(terminal({ reason: "stop", complete: true })), frame(output)]],
    ["a failure that is the protocol's end", [frame(output), frame({ ...failure, complete: true })]],
  ])("is complete by %s, and however it ends nothing fails", (_name, inputs) => {
    for (const input of [end, reset, deadline("idle"), deadline("request")]) {
      expect(after([...inputs, input])).toEqual({ type: "finish", complete: true });
    }
  });

  it("records a failure once, stays, and appends nothing", () => {
    const other = frame(failed({ code: "rate_limit_exceeded" }));
    const inputs = [frame(output), frame(failure), other, frame(neutral)];
    expect(run(inputs).slice(1)).toEqual([{ type: "forward", record: failure.failure }, forward, forward]);
    expect(after([...inputs, end])).toEqual({ type: "finish", complete: false });
    for (const input of [reset, deadline("idle"), deadline("request")]) {
      expect(after([...inputs, input])).toEqual({ type: "fail", failure: failure.failure, append: false });
    }
  });

  it("is not made complete by a terminal that is none of the protocol's ends", () => {
    expect(after([frame(output), frame(terminal({ final: true })), end])).toEqual(truncated);
  });

  it("cannot tell whether it is complete once it is blind", () => {
    expect(after([frame(output), blind, end])).toEqual({ type: "finish", complete: false });
    expect(after([frame(output), blind, frame(last), end])).toEqual({ type: "finish", complete: true });
    expect(after([frame(output), blind, reset])).toMatchObject({ type: "fail", failure: { kind: "network" } });
  });

  it("ends clean without completion where a terminal is not required", () => {
    expect(after([frame(output), end], { requireTerminal: false })).toEqual({ type: "finish", complete: false });
    expect(after([frame(output), reset], { requireTerminal: false })).toMatchObject({ type: "fail" });
  });

  it("is closed by its end", () => {
    expect(run([frame(output), frame(last), end, frame(failure), end]).slice(2)).toEqual([
      { type: "finish", complete: true },
      ignore,
      ignore,
    ]);
  });
});

describe("without validation", () => {
  it("releases at the first byte, or the first event", () => {
    expect(run([bytes], { validation: "first-byte" })).toEqual([ungated]);
    expect(run([bytes, frame(keepalive)], { validation: "first-event" })).toEqual([hold, ungated]);
    expect(run([bytes, frame(neutral)], { validation: "overload" })).toEqual([hold, ungated]);
  });

  it.each(["first-event", "first-byte", "overload"] as const)("passes an error on and records it, %s", (validation) => {
    expect(run([frame(failure), end], { validation })).toEqual([
      { ...ungated, record: failure.failure },
      { type: "finish", complete: false },
    ]);
    expect(after([frame(failure), reset], { validation })).toEqual({
      type: "fail",
      failure: failure.failure,
      append: false,
    });
  });

  it("rejects an overload where that is looked for, by code or type", () => {
    expect(run([frame(overload)], { validation: "overload" })).toEqual([rejection({ status: 503 })]);
    expect(run([frame(failed({ type: "overloaded_error" }))], { validation: "overload" })).toEqual([rejection({})]);
    expect(run([trailing(overload)], { validation: "overload" })).toEqual([rejection({})]);
    expect(run([frame(overload)], { validation: "first-event" })).toMatchObject([ungated]);
    expect(run([trailing(overload)], { validation: "first-event" })).toEqual([hold]);
  });

  it("looks for an overload in the first event only", () => {
    expect(run([frame(neutral), frame(overload)], { validation: "overload" })).toEqual([
      ungated,
      { type: "forward", record: overload.failure },
    ]);
  });

  it.each(["first-event", "first-byte", "overload"] as const)("passes on what is no stream, %s", (validation) => {
    expect(run([foreign], { validation })).toEqual([ungated]);
  });

  it("still ends in a rejection where nothing came", () => {
    expect(run([end], { validation: "first-byte" })).toEqual([rejection({ kind: "empty-stream" })]);
    expect(run([end], { validation: "first-event", ttftTimeoutMs: 5 })).toEqual([rejection({ status: 408 })]);
    expect(run([deadline("ttft", 5)], { validation: "first-event", ttftTimeoutMs: 5 })).toEqual([
      rejection({ status: 408 }),
    ]);
  });
});

describe("closed", () => {
  it("ignores everything", () => {
    const gate = new Gate(rules);
    gate.close();
    expect(gate.phase).toBe("closed");
    for (const input of [
      bytes,
      foreign,
      limit,
      blind,
      end,
      reset,
      deadline("idle"),
      frame(output),
      frame(failure),
      trailing(failure),
    ]) {
      expect(gate.step(input)).toEqual(ignore);
    }
  });
});
