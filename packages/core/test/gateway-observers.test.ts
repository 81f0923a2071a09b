import { describe, expect, it } from "vitest";
import type { Observer, ObserverEvent } from "../src/observability/observer.js";
import {
  anthropicErrorFirst,
  anthropicHealthy,
  anthropicTruncatedAfterText,
} from "../src/testing/anthropic-streams.js";
import {
  chatEmptyCompletion,
  chatErrorAfterText,
  chatHealthy,
  chatPreamble,
  chatTextDeltas,
  chatTruncatedAfterText,
} from "../src/testing/chat-streams.js";
import { responsesHealthy } from "../src/testing/responses-streams.js";
import { answer, broken, connected, data, end, head, mute, stream } from "./scripted-upstream.js";
import { expectOver, requestEnds, send, stage, story, type Setup, type Stage } from "./fallback/serving.js";

const whole = stream(chatHealthy(), end());
const text = chatTextDeltas()[0];
const noRetry = { retry: { attempts: 0 } };

async function played(setup: Setup, options: Parameters<typeof send>[1] = {}, ms = 0): Promise<Stage> {
  const scene = stage(setup);
  send(scene, options);
  await scene.clock.advance(ms);
  expectOver(scene);
  return scene;
}

function rejection(scene: Stage): ObserverEvent | undefined {
  return scene.observed.find((event) => event.type === "attempt-reject");
}

describe("what observers are told, in order", () => {
  it("of a success", async () => {
    const scene = await played({ targets: { a: whole } });
    expect(story(scene)).toEqual(["request-start", "attempt-start", "release", "stream-end", "request-end"]);
    const { requestId } = scene.observed[0];
    const attempt = { requestId, attempt: 1, target: "a/x", provider: "a", model: "x" };
    expect(scene.observed).toMatchObject([
      { requestId, protocol: "openai-chat", streaming: true, requestedModel: "m" },
      { ...attempt, retry: false },
      { ...attempt, status: 200, reason: "output", ttftMs: 0, holdMs: 0 },
      { ...attempt, complete: true, bytes: chatHealthy().join("").length },
      { requestId, status: 200, outcome: "success", attempts: 1, target: "a/x", durationMs: 0 },
    ]);
    expect(requestEnds(scene)[0].failure).toBeUndefined();
  });

  it("of a success whose stream came in one piece, release included", async () => {
    const inSend = { steps: [connected(), head(), data(chatHealthy().join("")), end()], inSend: true };
    const scene = await played({ targets: { a: inSend } });
    expect(story(scene)).toEqual(["request-start", "attempt-start", "release", "stream-end", "request-end"]);
    expect(requestEnds(scene)).toMatchObject([{ attempts: 1, target: "a/x", status: 200 }]);
  });

  it("of a whole answer that is no stream", async () => {
    const scene = await played({ targets: { a: answer(201, { id: 1 }) } }, { body: { stream: false } });
    expect(story(scene)).toEqual(["request-start", "attempt-start", "release", "stream-end", "request-end"]);
    expect(scene.observed).toMatchObject([
      { streaming: false },
      {},
      { reason: "ungated", status: 201 },
      {},
      { status: 201 },
    ]);
  });

  it("of a fallback: a success with a failed attempt", async () => {
    const scene = await played({ targets: { a: answer(500, { error: { message: "no", type: "t" } }), b: whole } });
    expect(story(scene)).toEqual([
      "request-start",
      "attempt-start",
      "attempt-reject",
      "attempt-start",
      "release",
      "stream-end",
      "request-end",
    ]);
    expect(rejection(scene)).toMatchObject({
      attempt: 1,
      target: "a/x",
      failure: { status: 500, kind: "http", code: "t" },
    });
    expect(requestEnds(scene)).toMatchObject([{ outcome: "success", attempts: 2, target: "b/x" }]);
  });

  it("of a failure: its mapped status, never a success", async () => {
    const scene = await played(
      { targets: { a: stream(anthropicErrorFirst()) }, type: "anthropic", config: noRetry },
      { api: "messages" },
    );
    expect(story(scene)).toEqual(["request-start", "attempt-start", "attempt-reject", "request-end"]);
    expect(rejection(scene)).toMatchObject({ failure: { status: 503, code: "overloaded_error" } });
    expect(requestEnds(scene)).toMatchObject([{ outcome: "failure", status: 503, attempts: 1 }]);
  });

  it.each<[string, Setup, number, object]>([
    [
      "a TTFT timeout",
      { targets: { a: mute }, config: { ...noRetry, timeouts: { ttftTimeoutMs: 9 } } },
      9,
      { kind: "ttft-timeout", status: 408 },
    ],
    [
      "an empty stream",
      { targets: { a: stream([], end()) }, config: noRetry },
      0,
      { kind: "empty-stream", status: 502 },
    ],
    [
      "a truncated stream",
      { targets: { a: stream(chatPreamble(), end()) }, config: noRetry },
      0,
      { kind: "truncated-stream", status: 502 },
    ],
    [
      "an empty completion",
      { targets: { a: stream(chatEmptyCompletion({ outputTokens: 0 }), end()) }, config: noRetry },
      0,
      { kind: "empty-completion", status: 502 },
    ],
    ["HTML", { targets: { a: stream(["<html>"], end()) }, config: noRetry }, 0, { kind: "invalid-body", status: 502 }],
    [
      "a reset",
      { targets: { a: { steps: [connected(), broken()] } }, config: noRetry },
      0,
      { kind: "network", status: 502 },
    ],
  ])("of %s", async (_name, setup, ms, failure) => {
    const scene = await played(setup, {}, ms);
    expect(rejection(scene)).toMatchObject({ failure });
    expect(requestEnds(scene)).toMatchObject([{ outcome: "failure", failure }]);
  });

  it("of a hold limit", async () => {
    const scene = await played(
      { targets: { a: stream(chatPreamble(), data(chatHealthy().slice(1).join(""), 60_000), end()) } },
      {},
      60_000,
    );
    expect(story(scene)).toEqual([
      "request-start",
      "attempt-start",
      "gate-overflow",
      "release",
      "stream-end",
      "request-end",
    ]);
    expect(scene.observed[2]).toMatchObject({ limit: "time", heldBytes: chatPreamble().join("").length });
    expect(scene.observed[3]).toMatchObject({ reason: "overflow", holdMs: 50_000, ttftMs: 50_000 });
  });

  it("of a size limit that fails", async () => {
    const config = { ...noRetry, gate: { maxHeldBytes: 65_536, onOverflow: "fail" } } as const;
    const scene = await played({ targets: { a: stream([`: ${"x".repeat(70_000)}`]) }, config });
    expect(story(scene)).toEqual(["request-start", "attempt-start", "gate-overflow", "attempt-reject", "request-end"]);
    expect(requestEnds(scene)).toMatchObject([{ status: 502, failure: { kind: "gate-overflow" } }]);
  });
});

describe("after release, observers are told", () => {
  it("of an error event once, whatever follows", async () => {
    const scene = await played({
      targets: { a: stream([...chatErrorAfterText(), ...chatErrorAfterText()], broken()) },
    });
    expect(story(scene)).toEqual(["request-start", "attempt-start", "release", "stream-fail", "request-end"]);
    expect(requestEnds(scene)).toMatchObject([
      { outcome: "failure", status: 200, failure: { kind: "in-band", status: 500 } },
    ]);
  });

  it("of an error event that came in the chunk that was released", async () => {
    const scene = await played({ targets: { a: stream([chatErrorAfterText().join("")], end()) } });
    expect(story(scene)).toEqual(["request-start", "attempt-start", "release", "stream-fail", "request-end"]);
  });

  it.each([
    ["a reset", [broken()], "network"],
    ["an end without completion", [end()], "truncated-stream"],
  ] as const)("of %s", async (_name, last, kind) => {
    const scene = await played({ targets: { a: stream(chatTruncatedAfterText(), ...last) } });
    expect(story(scene)).toEqual(["request-start", "attempt-start", "release", "stream-fail", "request-end"]);
    expect(requestEnds(scene)).toMatchObject([{ outcome: "failure", status: 200, failure: { kind } }]);
  });

  it("of a clean end without completion of a compatible provider, which is no failure", async () => {
    const scene = await played({ targets: { a: stream(chatTruncatedAfterText(), end()) }, type: "openai-compatible" });
    expect(story(scene)).toEqual(["request-start", "attempt-start", "release", "stream-end", "request-end"]);
    expect(scene.observed.at(-2)).toMatchObject({ complete: false });
  });

  it("of a reset after the last event, which lost nothing", async () => {
    const scene = await played({ targets: { a: stream(responsesHealthy(), broken()) } }, { api: "responses" });
    expect(story(scene)).toEqual(["request-start", "attempt-start", "release", "stream-end", "request-end"]);
  });

  it("of an Anthropic stream that breaks off, to which nothing is added", async () => {
    const scene = stage({ targets: { a: stream(anthropicTruncatedAfterText(), broken()) }, type: "anthropic" });
    const run = send(scene, { api: "messages" });
    await scene.clock.advance(0);
    expect(run.text).toBe(anthropicTruncatedAfterText().join(""));
    expect(run.end).toMatchObject({ type: "fail" });
    expectOver(scene);
  });

  it.each(["event", "abort"] as const)(
    "and the client as `onMidStreamFailure: %s` says",
    async (onMidStreamFailure) => {
      const scene = stage({
        targets: { a: stream(chatTruncatedAfterText(), broken()) },
        config: { onMidStreamFailure },
      });
      const run = send(scene);
      await scene.clock.advance(0);
      const sent = chatTruncatedAfterText().join("");
      expect(run.text === sent).toBe(onMidStreamFailure === "abort");
      expect(run.text.startsWith(sent)).toBe(true);
      expect(run.end).toMatchObject({ type: "fail", failure: { code: "upstream_error" } });
    },
  );
});

describe("observers", () => {
  const awkward: readonly [string, Observer][] = [
    [
      "that throws",
      {
        onEvent: () => {
          throw new Error("mine");
        },
      },
    ],
    ["that rejects", { onEvent: () => Promise.reject(new Error("mine")) as unknown as void }],
    ["that never settles", { onEvent: () => new Promise(() => undefined) as unknown as void }],
  ];
  it.each(awkward)("one %s matters to nobody", async (_name, observer) => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", note);
    const scene = await played(
      { targets: { a: [answer(500, {}), whole] }, config: { observers: [observer] } },
      {},
      100,
    );
    await scene.gateway.close();
    process.off("unhandledRejection", note);
    expect(requestEnds(scene)).toMatchObject([{ outcome: "success", attempts: 2 }]);
    expect(unhandled).toEqual([]);
  });

  it("see no credential, header value or body text", async () => {
    const scene = await played(
      {
        targets: { a: answer(401, { error: { message: "bad" } }), b: stream(anthropicHealthy(), end()) },
        type: "anthropic",
      },
      {
        api: "messages",
        headers: { "anthropic-beta": "secret-beta" },
        body: { messages: [{ role: "user", content: "secret-prompt" }] },
      },
    );
    expect(JSON.stringify(scene.observed)).not.toMatch(/secret|key-of/);
  });

  it("see one request each, however many are under way", async () => {
    const scene = stage({
      targets: { a: stream([...chatPreamble(), text], data(chatHealthy().slice(-3).join(""), 10), end()) },
    });
    for (let started = 0; started < 20; started += 1) send(scene);
    await scene.clock.advance(10);
    const ids = new Set(scene.observed.map((event) => event.requestId));
    expect(ids.size).toBe(20);
    expectOver(scene, 20);
  });
});
