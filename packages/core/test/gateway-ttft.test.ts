import { describe, expect, it } from "vitest";
import { chatHealthy, chatPreamble, chatTextDeltas } from "../src/testing/chat-streams.js";
import { anthropicHealthy } from "../src/testing/anthropic-streams.js";
import { responsesFailedAfterCreated, responsesHealthy } from "../src/testing/responses-streams.js";
import { data, end, mute, stream, unreachable } from "./scripted-upstream.js";
import { expectOver, send, stage } from "./fallback/serving.js";
import { alone, every, noRetry } from "./fallback/alone.js";

const text = chatTextDeltas()[0];

describe("the TTFT timeout", () => {
  const header = { headers: { "x-tfy-ttft-timeout-ms": "30000" } };
  const message = "TTFT timeout: no first chunk received (timeout=30000ms)";

  it.each([
    ["a target that does not answer", mute],
    ["a head without a stream", stream([])],
    ["comments", stream([], ...every(9_000, ": keepalive\n\n", 10))],
    ["role-only deltas", stream([], ...every(9_000, chatPreamble()[0], 10))],
    ["half an event", stream([text.slice(0, 40)], ...every(9_000, "x", 10))],
  ])("is not stopped by %s", async (_name, script) => {
    const { clock, run, call, scene } = await alone(script, noRetry, header);
    await clock.advance(29_999);
    expect(run.over).toBe(false);
    await clock.advance(1);
    expect(run.failed).toMatchObject({ status: 408, failure: { kind: "ttft-timeout", code: "ttft_timeout", message } });
    expect(call?.abortedAt).toBe(31_000);
    expectOver(scene);
  });

  it("counts the time to connect", async () => {
    const { clock, run } = await alone(unreachable, noRetry, { headers: { "x-tfy-ttft-timeout-ms": "3000" } });
    await clock.advance(3_000);
    expect(run.failed?.failure.kind).toBe("ttft-timeout");
  });

  it("moves on although 408 is in no list, without a retry on the same target", async () => {
    const scene = stage({
      targets: { a: mute, b: mute },
      config: {
        fallbackStatusCodes: [],
        retry: { attempts: 3, onStatusCodes: ["4xx", "5xx"] },
        timeouts: { ttftTimeoutMs: 10_000 },
      },
    });
    const run = send(scene);
    await scene.clock.advance(20_000);
    expect(run.attempts).toEqual(["a/x", "b/x"]);
    expect(run.failed).toMatchObject({
      status: 408,
      failure: { message: "TTFT timeout: no first chunk received (timeout=10000ms)" },
    });
    expect(run.failed?.headers["x-should-retry"]).toBe("false");
    expectOver(scene);
  });

  it("is won by the header over the configuration", async () => {
    const { clock, run } = await alone(mute, { ...noRetry, timeouts: { ttftTimeoutMs: 10 } }, header);
    await clock.advance(29_999);
    expect(run.over).toBe(false);
    await clock.advance(1);
    expect(run.failed?.failure.message).toBe(message);
  });

  it("has no effect after release", async () => {
    const { clock, run, scene } = await alone(
      stream([...chatPreamble(), text], data(chatHealthy().slice(-3).join(""), 60_000), end()),
      noRetry,
      header,
    );
    await clock.advance(60_000);
    expect(run.end).toEqual({ type: "finish" });
    expectOver(scene);
  });

  it("does not run for a request that does not stream", async () => {
    const { clock, run } = await alone(
      mute,
      { ...noRetry, timeouts: { ttftTimeoutMs: 10 } },
      { body: { stream: false } },
    );
    await clock.advance(1_000);
    expect(run.over).toBe(false);
  });

  it("names a stream that ends empty", async () => {
    const { clock, run, scene } = await alone(stream([": hello\n\n"], end()), noRetry, header);
    await clock.advance(0);
    expect(run.failed).toMatchObject({
      status: 408,
      failure: { message: "TTFT timeout: stream ended before first chunk (timeout=30000ms)" },
    });
    expectOver(scene);
  });

  it("switches the hold limit off", async () => {
    const { clock, run } = await alone(stream(chatPreamble()), noRetry, {
      headers: { "x-tfy-ttft-timeout-ms": "60000" },
    });
    await clock.advance(59_999);
    expect(run.over).toBe(false);
    await clock.advance(1);
    expect(run.failed?.status).toBe(408);
  });

  it("with `lastTargetTtft: exempt` does not run where no other target is left", async () => {
    const scene = stage({
      targets: { a: mute, b: mute },
      config: { ...noRetry, timeouts: { ttftTimeoutMs: 100, lastTargetTtft: "exempt" } },
    });
    const run = send(scene);
    await scene.clock.advance(1_000);
    expect(run.attempts).toEqual(["a/x", "b/x"]);
    expect(run.over).toBe(false);
  });
});

describe("an in-band failure at the last moment", () => {
  it("before a TTFT timeout that is due in the same instant decides by what came first", async () => {
    const script = stream(
      [],
      ...responsesFailedAfterCreated().map((chunk, index) => data(chunk, index === 0 ? 50 : 0)),
    );
    const { clock, run } = await alone(script, noRetry, {
      api: "responses",
      headers: { "x-tfy-ttft-timeout-ms": "51" },
    });
    await clock.advance(60);
    expect(run.failed).toMatchObject({ status: 500, failure: { kind: "in-band" } });
  });

  it("healthy streams of all three APIs pass untouched", async () => {
    for (const [api, type, chunks] of [
      ["chat", "openai", chatHealthy()],
      ["responses", "openai", responsesHealthy()],
      ["messages", "anthropic", anthropicHealthy()],
    ] as const) {
      const scene = stage({ targets: { a: stream(chunks, end()) }, type });
      const run = send(scene, { api });
      await scene.clock.advance(0);
      expect(run.text).toBe(chunks.join(""));
      expect(run.end).toEqual({ type: "finish" });
      expectOver(scene);
    }
  });
});
