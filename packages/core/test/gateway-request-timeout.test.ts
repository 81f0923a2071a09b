import { describe, expect, it } from "vitest";
import { chatHealthy, chatPreamble, chatTextDeltas } from "../src/testing/chat-streams.js";
import { answer, data, end, mute, stream } from "./scripted-upstream.js";
import { expectOver, send, stage } from "./fallback/serving.js";
import { alone, every, noRetry } from "./fallback/alone.js";

const text = chatTextDeltas()[0];

describe("the request timeout", () => {
  const slow = stream([...chatPreamble(), text], ...every(100_000, text, 12), end());

  it("by default ends at the release of a streaming request", async () => {
    const { clock, run, scene } = await alone(
      stream([...chatPreamble(), text], ...every(100_000, text, 11), data(chatHealthy().slice(-3).join("")), end()),
    );
    await clock.advance(1_200_000);
    expect(run.end).toEqual({ type: "finish" });
    expectOver(scene);
  });

  it.each([
    ["set by config", { ...noRetry, timeouts: { requestTimeoutMs: 600_000 } }, {}],
    ["set by header", noRetry, { headers: { "x-tfy-request-timeout": "600000" } }],
  ])("%s runs to the end of the attempt", async (_name, config, options) => {
    const { clock, run, call, scene } = await alone(slow, config, options);
    await clock.advance(599_999);
    expect(run.end).toBeUndefined();
    await clock.advance(1);
    expect(run.end).toMatchObject({ type: "fail", failure: { kind: "request-timeout", status: 408 } });
    expect(run.failed).toBeUndefined();
    expect(call?.aborted).toBe(true);
    expectOver(scene);
  });

  it("before release is a 408 that falls back and counts", async () => {
    const scene = stage({ targets: { a: mute, b: stream(chatHealthy(), end()) } });
    const run = send(scene, { headers: { "x-tfy-request-timeout": "250" } });
    await scene.clock.advance(250);
    expect(run.rejects[0]?.failure).toMatchObject({ kind: "request-timeout", status: 408 });
    expect(run.rejects[0]?.failure.message).toMatch(/^Request timeout: .+ \(timeout=250ms\)$/);
    expect(run.end).toEqual({ type: "finish" });
    expectOver(scene);
  });

  it("bounds a stream of comments, which neither the idle clock nor the hold limit does", async () => {
    const { clock, run, scene } = await alone(stream([], ...every(200_000, ": comment\n\n", 10)), noRetry);
    await clock.advance(600_000);
    expect(run.failed).toMatchObject({ status: 408, failure: { code: "request_timeout" } });
    expectOver(scene);
  });
});

describe("the total timeout", () => {
  it("ends the attempt under way and starts no other", async () => {
    const scene = stage({
      targets: { a: mute, b: stream(chatHealthy(), end()) },
      model: { timeouts: { totalTimeoutMs: 700 } },
    });
    const run = send(scene);
    await scene.clock.advance(699);
    expect(run.over).toBe(false);
    await scene.clock.advance(1);
    expect(run.failed).toMatchObject({ status: 408, failure: { kind: "total-timeout" } });
    expect(run.failed?.failure.message).toMatch(/\(timeout=700ms\)$/);
    expect(scene.upstream.calls).toHaveLength(1);
    expectOver(scene);
  });

  it("does not run after release", async () => {
    const { clock, run, scene } = await alone(
      stream(chatPreamble(), data(text), data(chatHealthy().slice(-3).join(""), 5_000), end()),
      { timeouts: { totalTimeoutMs: 700 } },
    );
    await clock.advance(5_000);
    expect(run.end).toEqual({ type: "finish" });
    expectOver(scene);
  });

  it("is not waited for in a backoff that would end after it", async () => {
    const scene = stage({
      targets: { a: answer(500, { error: { message: "no" } }) },
      config: { timeouts: { totalTimeoutMs: 40 } },
    });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.failed?.status).toBe(500);
    expect(scene.upstream.calls).toHaveLength(1);
    expectOver(scene);
  });
});
