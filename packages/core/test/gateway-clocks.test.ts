import { describe, expect, it } from "vitest";
import { chatHealthy, chatPreamble, chatTextDeltas } from "../src/testing/chat-streams.js";
import { anthropicHealthy, anthropicPreamble, anthropicTextDeltas } from "../src/testing/anthropic-streams.js";
import { responsesFailedAfterCreated, responsesHealthy, responsesTruncatedAfterText, responsesUnexplainedFailure } from "../src/testing/responses-streams.js";
import { answer, connected, data, end, head, mute, stream, unreachable, type Script, type Step } from "./scripted-upstream.js";
import type { BodyEnd, ReleasedEvent } from "../src/events.js";
import { expectOver, requestEnds, send, sendUnread, stage } from "./fallback/serving.js";

const noRetry = { retry: { attempts: 0 } };
const text = chatTextDeltas()[0];
const json = { "content-type": "application/json" };

/** Runs one target to its end, minute by minute at most. */
async function alone(script: Script, config: object = noRetry, options: Parameters<typeof send>[1] = {}) {
  const scene = stage({ targets: { a: script }, config: { ...config } });
  const run = send(scene, options);
  await scene.clock.advance(0);
  const [call] = scene.upstream.calls;
  return { ...scene, scene, run, call };
}

function every(ms: number, chunk: string, times: number): readonly Step[] {
  return Array.from({ length: times }, () => data(chunk, ms));
}

describe("silence, with the default clocks", () => {
  const cases: readonly [string, Script, number, number, string, string][] = [
    ["without a connection", unreachable, 5_000, 504, "upstream_connect_error", "Connect timeout: no connection to the provider (timeout=5000ms)"],
    ["without a head", mute, 300_000, 504, "upstream_idle_timeout", "Idle timeout: the provider sent nothing (timeout=300000ms)"],
    ["after the head", stream([]), 300_000, 504, "upstream_idle_timeout", "Idle timeout: the provider sent nothing (timeout=300000ms)"],
  ];
  it.each(cases)("%s ends in its own failure", async (_name, script, ms, status, code, message) => {
    const { clock, run, call, scene } = await alone(script);
    await clock.advance(ms - 1);
    expect(run.over).toBe(false);
    await clock.advance(1);
    expect(run.failed?.failure).toMatchObject({ status, code, message });
    expect(run.failed?.status).toBe(status);
    expect(call?.abortedAt).toBe(1000 + ms);
    expectOver(scene);
  });

  it("in the middle of the first event ends by the idle clock", async () => {
    const { clock, run, call, scene } = await alone(stream(['data: {"choices":']), noRetry);
    await clock.advance(299_999);
    expect(run.over).toBe(false);
    await clock.advance(1);
    expect(run.failed).toMatchObject({ status: 504, failure: { code: "upstream_idle_timeout" } });
    expect(call?.aborted).toBe(true);
    expectOver(scene);
  });

  it("in the middle of a later event ends in a release at the hold limit and then by the idle clock", async () => {
    const { clock, run, call, scene } = await alone(stream([...chatPreamble(), 'data: {"choices":']));
    await clock.advance(50_000);
    expect(run.released?.status).toBe(200);
    expect(scene.observed).toContainEqual(expect.objectContaining({ type: "gate-overflow", limit: "time" }));
    await clock.advance(249_999);
    expect(run.end).toBeUndefined();
    await clock.advance(1);
    expect(run.end).toMatchObject({ type: "fail", failure: { code: "upstream_idle_timeout", status: 504 } });
    expect(call?.aborted).toBe(true);
    expectOver(scene);
  });

  it("after release ends in an error event and a broken stream", async () => {
    const { clock, run, call, scene } = await alone(stream([...chatPreamble(), text]));
    await clock.advance(299_999);
    expect(run.end).toBeUndefined();
    await clock.advance(1);
    expect(run.end).toMatchObject({ type: "fail", failure: { code: "upstream_idle_timeout" } });
    expect(run.text).toContain('"code":"upstream_idle_timeout"');
    expect(call?.aborted).toBe(true);
    expect(requestEnds(scene)[0]).toMatchObject({ outcome: "failure", status: 200 });
    expectOver(scene);
  });

  it("after release of an Anthropic stream ends in a broken stream without an event", async () => {
    const scene = stage({ targets: { a: stream([...anthropicPreamble(), anthropicTextDeltas()[0]]) }, type: "anthropic" });
    const run = send(scene, { api: "messages" });
    await scene.clock.advance(300_000);
    expect(run.end).toMatchObject({ type: "fail" });
    expect(run.text).toBe([...anthropicPreamble(), anthropicTextDeltas()[0]].join(""));
    expectOver(scene);
  });

  it("of a non-streaming request ends by the request timeout", async () => {
    const { clock, run, call, scene } = await alone(mute, noRetry, { body: { stream: false } });
    await clock.advance(599_999);
    expect(run.over).toBe(false);
    await clock.advance(1);
    expect(run.failed).toMatchObject({ status: 408, failure: { code: "request_timeout", kind: "request-timeout" } });
    expect(run.failed?.headers["x-should-retry"]).toBe("false");
    expect(call?.aborted).toBe(true);
    expectOver(scene);
  });

  it("in the body of a non-streaming answer breaks it at the request timeout", async () => {
    const { clock, run, scene } = await alone({ steps: [connected(), head(200, json), data('{"id":')] }, noRetry, { body: { stream: false } });
    await clock.advance(599_999);
    expect(run.end).toBeUndefined();
    await clock.advance(1);
    expect(run.end).toMatchObject({ type: "fail", failure: { code: "request_timeout" } });
    expect(run.text).toBe('{"id":');
    expectOver(scene);
  });

  it("in the body of an error answer does not delay its status by more than a second", async () => {
    const { clock, run, call, scene } = await alone({ steps: [connected(), head(400, json), data('{"error"')] });
    await clock.advance(999);
    expect(run.over).toBe(false);
    await clock.advance(1);
    expect(run.failed).toMatchObject({ status: 400, failure: { kind: "http" } });
    expect(call?.aborted).toBe(true);
    expectOver(scene);
  });
});

describe("the request timeout", () => {
  const slow = stream([...chatPreamble(), text], ...every(100_000, text, 12), end());

  it("by default ends at the release of a streaming request", async () => {
    const { clock, run, scene } = await alone(stream([...chatPreamble(), text], ...every(100_000, text, 11), data(chatHealthy().slice(-3).join("")), end()));
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
    const scene = stage({ targets: { a: mute, b: stream(chatHealthy(), end()) }, model: { timeouts: { totalTimeoutMs: 700 } } });
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
    const { clock, run, scene } = await alone(stream(chatPreamble(), data(text), data(chatHealthy().slice(-3).join(""), 5_000), end()), { timeouts: { totalTimeoutMs: 700 } });
    await clock.advance(5_000);
    expect(run.end).toEqual({ type: "finish" });
    expectOver(scene);
  });

  it("is not waited for in a backoff that would end after it", async () => {
    const scene = stage({ targets: { a: answer(500, { error: { message: "no" } }) }, config: { timeouts: { totalTimeoutMs: 40 } } });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.failed?.status).toBe(500);
    expect(scene.upstream.calls).toHaveLength(1);
    expectOver(scene);
  });
});

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
      config: { fallbackStatusCodes: [], retry: { attempts: 3, onStatusCodes: ["4xx", "5xx"] }, timeouts: { ttftTimeoutMs: 10_000 } },
    });
    const run = send(scene);
    await scene.clock.advance(20_000);
    expect(run.attempts).toEqual(["a/x", "b/x"]);
    expect(run.failed).toMatchObject({ status: 408, failure: { message: "TTFT timeout: no first chunk received (timeout=10000ms)" } });
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
    const { clock, run, scene } = await alone(stream([...chatPreamble(), text], data(chatHealthy().slice(-3).join(""), 60_000), end()), noRetry, header);
    await clock.advance(60_000);
    expect(run.end).toEqual({ type: "finish" });
    expectOver(scene);
  });

  it("does not run for a request that does not stream", async () => {
    const { clock, run } = await alone(mute, { ...noRetry, timeouts: { ttftTimeoutMs: 10 } }, { body: { stream: false } });
    await clock.advance(1_000);
    expect(run.over).toBe(false);
  });

  it("names a stream that ends empty", async () => {
    const { clock, run, scene } = await alone(stream([": hello\n\n"], end()), noRetry, header);
    await clock.advance(0);
    expect(run.failed).toMatchObject({ status: 408, failure: { message: "TTFT timeout: stream ended before first chunk (timeout=30000ms)" } });
    expectOver(scene);
  });

  it("switches the hold limit off", async () => {
    const { clock, run } = await alone(stream(chatPreamble()), noRetry, { headers: { "x-tfy-ttft-timeout-ms": "60000" } });
    await clock.advance(59_999);
    expect(run.over).toBe(false);
    await clock.advance(1);
    expect(run.failed?.status).toBe(408);
  });

  it("with `lastTargetTtft: exempt` does not run where no other target is left", async () => {
    const scene = stage({ targets: { a: mute, b: mute }, config: { ...noRetry, timeouts: { ttftTimeoutMs: 100, lastTargetTtft: "exempt" } } });
    const run = send(scene);
    await scene.clock.advance(1_000);
    expect(run.attempts).toEqual(["a/x", "b/x"]);
    expect(run.over).toBe(false);
  });
});

describe("the hold limit", () => {
  it("releases what is held", async () => {
    const { clock, run, scene } = await alone(stream(chatPreamble(), data(text, 60_000), data(chatHealthy().slice(-3).join("")), end()));
    await clock.advance(49_999);
    expect(run.released).toBeUndefined();
    await clock.advance(1);
    expect(run.text).toBe(chatPreamble().join(""));
    await clock.advance(10_000);
    expect(run.end).toEqual({ type: "finish" });
    expectOver(scene);
  });

  it("runs from the first event: comments and half an event do not start it", async () => {
    const { clock, run } = await alone(stream([": queued\n\n"], data(chatPreamble().join("").slice(0, 9), 40_000), data(chatPreamble().join("").slice(9), 40_000)));
    await clock.advance(129_999);
    expect(run.released).toBeUndefined();
    await clock.advance(1);
    expect(run.text).toBe(`: queued\n\n${chatPreamble().join("")}`);
  });

  it("never comes with `maxHoldMs: 0`", async () => {
    const { clock, run } = await alone(stream(chatPreamble()), { ...noRetry, gate: { maxHoldMs: 0 } });
    await clock.advance(299_999);
    expect(run.over).toBe(false);
    await clock.advance(1);
    expect(run.failed?.failure.code).toBe("upstream_idle_timeout");
  });
});

describe("the detail of a failure", () => {
  const unexplained = responsesUnexplainedFailure();
  const message = "Provider reported a failure in the response stream without a reason";

  it("is awaited for a second", async () => {
    const { clock, run, call, scene } = await alone(stream(unexplained), noRetry, { api: "responses" });
    await clock.advance(999);
    expect(run.over).toBe(false);
    await clock.advance(1);
    expect(run.failed).toMatchObject({ status: 502, failure: { code: "response_failed", message } });
    expect(call?.aborted).toBe(true);
    expectOver(scene);
  });

  it.each([": comment\n\n", 'event: keepalive\ndata: {"type":"keepalive"}\n\n', "half an eve"])(
    "is awaited no longer where %j keeps coming",
    async (chunk) => {
      const { clock, run } = await alone(stream(unexplained, ...every(400, chunk, 10)), noRetry, { api: "responses" });
      await clock.advance(999);
      expect(run.over).toBe(false);
      await clock.advance(1);
      expect(run.failed?.failure.message).toBe(message);
    },
  );

  it("is the 502 under a TTFT timeout that runs out meanwhile", async () => {
    const { clock, run } = await alone(stream(unexplained), noRetry, { api: "responses", headers: { "x-tfy-ttft-timeout-ms": "500" } });
    await clock.advance(500);
    expect(run.failed).toMatchObject({ status: 502, failure: { kind: "unexplained" } });
  });
});

describe("after release", () => {
  it("an error event of a Responses stream goes on counting", async () => {
    const chunks = responsesTruncatedAfterText();
    const { clock, run } = await alone(stream(chunks), noRetry, { api: "responses" });
    await clock.advance(300_000);
    expect(run.text).toContain(`"sequence_number":${chunks.length}`);
    expect(run.text.startsWith(chunks.join(""))).toBe(true);
    expect(run.end?.type).toBe("fail");
  });

  it("a stream that is complete but left open is ended cleanly by the idle clock", async () => {
    const { clock, run, call, scene } = await alone(stream(responsesHealthy()), noRetry, { api: "responses" });
    await clock.advance(300_000);
    expect(run.end).toEqual({ type: "finish" });
    expect(call?.aborted).toBe(true);
    expectOver(scene);
  });

  it("the idle clock stands still while the client takes nothing, and starts anew when it does", async () => {
    const scene = stage({ targets: { a: stream([...chatPreamble(), text]) } });
    const run = sendUnread(scene);
    await scene.clock.advance(0);
    const ends: BodyEnd[] = [];
    const { body } = run.released as ReleasedEvent;
    body.pipeTo({ write: () => false, end: (bodyEnd) => void ends.push(bodyEnd) });
    // One that was on its way when reading stopped.
    scene.upstream.calls[0]?.deliver(data(text));
    await scene.clock.advance(1_000_000);
    expect(ends).toEqual([]);
    for (let taken = 0; taken < 3; taken += 1) body.resume();
    await scene.clock.advance(299_999);
    body.resume();
    expect(ends).toEqual([]);
    await scene.clock.advance(1);
    body.resume();
    body.resume();
    expect(ends).toMatchObject([{ type: "fail", failure: { code: "upstream_idle_timeout" } }]);
    expectOver(scene);
  });
});

describe("the timeout headers", () => {
  const bad = ["abc", "1.5", "-1", "0", "", "1e3", "9999999999", "2147483648", " 5", "5 ", "+5", "0x10", "5, 5", "٣", ["5"], ["5", "6"]];
  const names = ["x-tfy-ttft-timeout-ms", "x-tfy-request-timeout"];

  it.each(names.flatMap((name) => bad.map((value) => [name, value] as const)))("%s: %j is a 400 before any upstream is called", async (name, value) => {
    const { run, upstream } = await alone(mute, noRetry, { headers: { [name]: value } });
    expect(run.failed?.status).toBe(400);
    expect(run.failed?.failure.message).toContain(name);
    expect(upstream.calls).toHaveLength(0);
  });

  it.each(bad.map((value) => [value]))("TTFT %j is ignored where the request does not stream", async (value) => {
    const { upstream } = await alone(mute, noRetry, { headers: { "x-tfy-ttft-timeout-ms": value }, body: { stream: false } });
    expect(upstream.calls).toHaveLength(1);
  });

  it.each(bad.map((value) => [value]))("request timeout %j is a 400 where the request does not stream", async (value) => {
    const { run, upstream } = await alone(mute, noRetry, { headers: { "x-tfy-request-timeout": value }, body: { stream: false } });
    expect(run.failed?.status).toBe(400);
    expect(upstream.calls).toHaveLength(0);
  });

  it.each(["1", "2147483647", "007"])("%j is taken", async (value) => {
    const { upstream } = await alone(mute, noRetry, { headers: { "x-tfy-ttft-timeout-ms": value, "x-tfy-request-timeout": value } });
    expect(upstream.calls).toHaveLength(1);
  });
});

describe("an in-band failure at the last moment", () => {
  it("before a TTFT timeout that is due in the same instant decides by what came first", async () => {
    const script = stream([], ...responsesFailedAfterCreated().map((chunk, index) => data(chunk, index === 0 ? 50 : 0)));
    const { clock, run } = await alone(script, noRetry, { api: "responses", headers: { "x-tfy-ttft-timeout-ms": "51" } });
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
