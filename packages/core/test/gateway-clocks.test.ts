import { describe, expect, it } from "vitest";
import { chatHealthy, chatPreamble, chatTextDeltas } from "../src/testing/chat-streams.js";
import { anthropicPreamble, anthropicTextDeltas } from "../src/testing/anthropic-streams.js";
import {
  responsesHealthy,
  responsesTruncatedAfterText,
  responsesUnexplainedFailure,
} from "../src/testing/responses-streams.js";
import { connected, data, end, head, mute, stream, unreachable, type Script } from "./scripted-upstream.js";
import type { BodyEnd, ReleasedEvent } from "../src/events.js";
import { expectOver, requestEnds, send, sendUnread, stage } from "./fallback/serving.js";
import { alone, every, noRetry } from "./fallback/alone.js";

const text = chatTextDeltas()[0];
const json = { "content-type": "application/json" };

describe("silence, with the default clocks", () => {
  const cases: readonly [string, Script, number, number, string, string][] = [
    [
      "without a connection",
      unreachable,
      5_000,
      504,
      "upstream_connect_error",
      "Connect timeout: no connection to the provider (timeout=5000ms)",
    ],
    [
      "without a head",
      mute,
      300_000,
      504,
      "upstream_idle_timeout",
      "Idle timeout: the provider sent nothing (timeout=300000ms)",
    ],
    [
      "after the head",
      stream([]),
      300_000,
      504,
      "upstream_idle_timeout",
      "Idle timeout: the provider sent nothing (timeout=300000ms)",
    ],
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
    const scene = stage({
      targets: { a: stream([...anthropicPreamble(), anthropicTextDeltas()[0]]) },
      type: "anthropic",
    });
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
    const { clock, run, scene } = await alone({ steps: [connected(), head(200, json), data('{"id":')] }, noRetry, {
      body: { stream: false },
    });
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

describe("a connect timeout of the HTTP client", () => {
  it("is one of ours, should it come first", async () => {
    const error = Object.assign(new Error("Connect Timeout Error"), { code: "UND_ERR_CONNECT_TIMEOUT" });
    const { run, scene } = await alone({ steps: [{ type: "error", error, after: 0 }] });
    expect(run.failed?.failure).toMatchObject({ kind: "connect-timeout", status: 504, code: "upstream_connect_error" });
    expectOver(scene);
  });
});

describe("the hold limit", () => {
  it("releases what is held", async () => {
    const { clock, run, scene } = await alone(
      stream(chatPreamble(), data(text, 60_000), data(chatHealthy().slice(-3).join("")), end()),
    );
    await clock.advance(49_999);
    expect(run.released).toBeUndefined();
    await clock.advance(1);
    expect(run.text).toBe(chatPreamble().join(""));
    await clock.advance(10_000);
    expect(run.end).toEqual({ type: "finish" });
    expectOver(scene);
  });

  it("runs from the first event: comments and half an event do not start it", async () => {
    const { clock, run } = await alone(
      stream(
        [": queued\n\n"],
        data(chatPreamble().join("").slice(0, 9), 40_000),
        data(chatPreamble().join("").slice(9), 40_000),
      ),
    );
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
    const { clock, run } = await alone(stream(unexplained), noRetry, {
      api: "responses",
      headers: { "x-tfy-ttft-timeout-ms": "500" },
    });
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
