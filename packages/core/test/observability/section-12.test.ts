/** What each kind of failure is to those who watch: events, counters, log level and span status, asserted together. */

import { SpanStatusCode } from "@opentelemetry/api";
import { describe, expect, it } from "vitest";
import { anthropicErrorFirst, anthropicHealthy } from "../../src/testing/anthropic-streams.js";
import {
  chatEmptyCompletion,
  chatErrorAfterText,
  chatErrorFirst,
  chatHealthy,
  chatPreamble,
  chatTruncatedAfterText,
} from "../../src/testing/chat-streams.js";
import { broken, connected, data, end, mute, stream, type Script } from "../scripted-upstream.js";
import { expectOver, requestEnds, send, story, type RequestOptions, type Setup } from "../fallback/serving.js";
import { watch, type Watched } from "./watched.js";

const { ERROR, UNSET } = SpanStatusCode;
const noRetry = { retry: { attempts: 0 } };
const good = stream(chatHealthy(), end());

interface Row {
  readonly script: Script;
  readonly kind: string;
  readonly status: number;
  readonly level: "debug" | "info" | "warn";
  /** In the error metrics. */
  readonly errors: number;
  readonly ms?: number;
  readonly timeouts?: object;
  readonly type?: "anthropic";
}

const rows: Readonly<Record<string, Row>> = {
  "an Anthropic overload": {
    script: stream(anthropicErrorFirst()),
    kind: "in-band",
    status: 503,
    level: "debug",
    errors: 1,
    type: "anthropic",
  },
  "a TTFT timeout": {
    script: mute,
    kind: "ttft-timeout",
    status: 408,
    level: "warn",
    errors: 1,
    ms: 9,
    timeouts: { ttftTimeoutMs: 9 },
  },
  "another in-band failure": {
    script: stream(chatErrorFirst()),
    kind: "in-band",
    status: 500,
    level: "warn",
    errors: 1,
  },
  "an empty stream": { script: stream([], end()), kind: "empty-stream", status: 502, level: "warn", errors: 1 },
  "a truncated stream": {
    script: stream(chatPreamble(), end()),
    kind: "truncated-stream",
    status: 502,
    level: "warn",
    errors: 1,
  },
  "a network error": {
    script: { steps: [connected(), broken()] },
    kind: "network",
    status: 502,
    level: "warn",
    errors: 1,
  },
  "a request timeout": {
    script: mute,
    kind: "request-timeout",
    status: 408,
    level: "warn",
    errors: 1,
    ms: 9,
    timeouts: { requestTimeoutMs: 9 },
  },
  "an idle timeout": {
    script: mute,
    kind: "idle-timeout",
    status: 504,
    level: "warn",
    errors: 1,
    ms: 9,
    timeouts: { idleTimeoutMs: 9 },
  },
  "an empty completion": {
    script: stream(chatEmptyCompletion({ outputTokens: 0 }), end()),
    kind: "empty-completion",
    status: 502,
    level: "info",
    errors: 0,
  },
};

function setupOf({ script, timeouts = {}, type }: Row, others: Readonly<Record<string, Script>>): Setup {
  return {
    targets: { a: script, ...others },
    config: { ...noRetry, timeouts, cooldown: false },
    ...(type && { type }),
  };
}

async function play(setup: Setup, options: RequestOptions, ms = 0): Promise<Watched> {
  const scene = watch(setup);
  send(scene, options);
  await scene.clock.advance(ms);
  expectOver(scene);
  return scene;
}

const api = ({ type }: Row): RequestOptions => ({ api: type === "anthropic" ? "messages" : "chat" });
const levels = ({ lines }: Watched): string[] => lines.map(({ level, message }) => `${level}: ${message}`);
const spanStatuses = (scene: Watched): [string, SpanStatusCode][] =>
  scene.spans().map(({ name, status }) => [name.split(" ")[0], status.code]);

async function errorCount(scene: Watched): Promise<number> {
  return (await scene.count("attempt_failures_total")) + (await scene.count("stream_failures_total"));
}

describe.each(Object.entries(rows))("%s", (_name, row) => {
  const { kind, status, level, errors, ms } = row;

  it("of the only target fails the attempt and the request", async () => {
    const scene = await play(setupOf(row, {}), api(row), ms);
    expect(story(scene)).toEqual(["request-start", "attempt-start", "attempt-reject", "request-end"]);
    expect(requestEnds(scene)).toMatchObject([{ outcome: "failure", status, failure: { kind, status } }]);
    expect(await errorCount(scene)).toBe(errors);
    expect(
      await scene.count("attempts_total", { outcome: errors === 1 ? "failure" : "empty-completion", status }),
    ).toBe(1);
    expect(await scene.count("empty_completions_total", { action: "rejected" })).toBe(1 - errors);
    expect(await scene.count("requests_total", { outcome: "failure", status, target: "a/x", model: "m" })).toBe(1);
    expect(levels(scene)).toEqual([`${level}: attempt rejected`, `${level}: request ended`]);
    expect(spanStatuses(scene)).toEqual([
      ["chat", ERROR],
      ["first_chunk", ERROR],
    ]);
  });

  it("before a fallback that succeeds is a failed attempt of a request that succeeds", async () => {
    const healthy = row.type === "anthropic" ? stream(anthropicHealthy(), end()) : good;
    const scene = await play(setupOf(row, { b: healthy }), api(row), ms);
    expect(story(scene)).toEqual([
      "request-start",
      "attempt-start",
      "attempt-reject",
      "attempt-start",
      "release",
      "stream-end",
      "request-end",
    ]);
    expect(requestEnds(scene)).toMatchObject([{ outcome: "success", status: 200, attempts: 2, target: "b/x" }]);
    expect(await errorCount(scene)).toBe(errors);
    expect(await scene.count("attempts_total", { target: "b/x", outcome: "success", status: 200 })).toBe(1);
    expect(await scene.count("requests_total", { outcome: "success", status: 200, target: "b/x" })).toBe(1);
    expect(await scene.count("requests_total")).toBe(1);
    expect(await scene.count("fallbacks_total", { target: "b/x" })).toBe(1);
    expect(await scene.count("rescued_requests_total")).toBe(1);
    expect(levels(scene)).toEqual([`${level}: attempt rejected`, "info: request ended"]);
    expect(spanStatuses(scene)).toEqual([
      ["chat", ERROR],
      ["chat", UNSET],
      ["first_chunk", UNSET],
    ]);
  });
});

describe("a stream that fails after release", () => {
  it.each([
    ["in-band", stream(chatErrorAfterText(), end()), "in-band"],
    ["by breaking off", stream(chatTruncatedAfterText(), broken()), "network"],
  ])("%s is a failure, although 200 was sent", async (_name, script, kind) => {
    const scene = await play({ targets: { a: script, b: good }, config: { cooldown: false } }, {});
    expect(story(scene)).toEqual(["request-start", "attempt-start", "release", "stream-fail", "request-end"]);
    expect(requestEnds(scene)).toMatchObject([{ outcome: "failure", status: 200, failure: { kind } }]);
    expect(await scene.count("stream_failures_total", { kind })).toBe(1);
    expect(await scene.count("attempt_failures_total")).toBe(0);
    expect(await scene.count("attempts_total", { outcome: "failure" })).toBe(1);
    expect(await scene.count("open_streams")).toBe(0);
    expect(levels(scene)).toEqual(["warn: stream failed after release", "warn: request ended"]);
    expect(spanStatuses(scene)).toEqual([
      ["chat", ERROR],
      ["first_chunk", ERROR],
    ]);
  });
});

describe("what was released although it was no proper opening", () => {
  it("at a limit of the gate has a counter of its own", async () => {
    const late = data(chatHealthy().slice(1).join(""), 60_000);
    const scene = await play({ targets: { a: stream(chatPreamble(), late, end()) } }, {}, 60_000);
    expect(story(scene)).toEqual([
      "request-start",
      "attempt-start",
      "gate-overflow",
      "release",
      "stream-end",
      "request-end",
    ]);
    expect(await scene.count("gate_overflows_total", { limit: "time", action: "released" })).toBe(1);
    expect(await errorCount(scene)).toBe(0);
    expect(levels(scene)).toEqual(["info: gate limit reached", "info: request ended"]);
    expect(spanStatuses(scene)).toEqual([
      ["chat", UNSET],
      ["first_chunk", UNSET],
    ]);
    expect(scene.spans()[0].events.map(({ name }) => name)).toEqual([
      "first_chunk.overflow",
      "first_chunk.hold",
      "first_chunk.release",
    ]);
  });

  it("as a billed, empty completion has a counter of its own", async () => {
    const scene = await play({ targets: { a: stream(chatEmptyCompletion({ outputTokens: 7 }), end()) } }, {});
    expect(story(scene)).toEqual(["request-start", "attempt-start", "release", "stream-end", "request-end"]);
    expect(await scene.count("empty_completions_total", { action: "released" })).toBe(1);
    expect(await errorCount(scene)).toBe(0);
    expect(levels(scene)).toEqual(["info: empty completion released", "info: request ended"]);
  });
});

describe("a client that leaves", () => {
  it("before release is no failure of the target", async () => {
    const gone = new AbortController();
    const scene = watch({ targets: { a: mute, b: good } });
    send(scene, { signal: gone.signal });
    await scene.clock.advance(5);
    gone.abort();
    await scene.clock.advance(0);
    expectOver(scene);
    expect(story(scene).slice(-2)).toEqual(["client-abort", "request-end"]);
    expect(requestEnds(scene)).toMatchObject([{ outcome: "client-abort", status: 499, released: false }]);
    expect(await scene.count("client_aborts_total", { phase: "waiting", kind: "client-abort" })).toBe(1);
    expect(await scene.count("attempts_total", { outcome: "client-abort" })).toBe(1);
    expect(await errorCount(scene)).toBe(0);
    expect(scene.lines.map(({ level }) => level)).not.toContain("warn");
    expect(levels(scene)).toContain("debug: request ended");
    expect(spanStatuses(scene)).toEqual([
      ["chat", UNSET],
      ["first_chunk", UNSET],
    ]);
  });

  it("after release ends the attempt with what was told of its usage", async () => {
    const gone = new AbortController();
    const scene = watch({ targets: { a: stream(anthropicHealthy().slice(0, 4)) }, type: "anthropic" });
    const run = send(scene, { api: "messages", signal: gone.signal });
    await scene.clock.advance(5);
    expect(await scene.count("open_streams")).toBe(1);
    gone.abort();
    run.released?.body.cancel();
    await scene.clock.advance(0);
    expect(story(scene)).toEqual(["request-start", "attempt-start", "release", "client-abort", "request-end"]);
    expect(scene.observed.at(-2)).toMatchObject({
      phase: "streaming",
      attempt: { target: "a/x" },
      usage: { inputTokens: expect.any(Number) as number },
    });
    expect(await scene.count("attempts_total", { outcome: "client-abort" })).toBe(1);
    expect(await scene.count("open_streams")).toBe(0);
    expect(await scene.count("open_requests")).toBe(0);
    expect(levels(scene)).toEqual(["debug: request ended"]);
  });
});

describe("a bug of ours", () => {
  it("is an error everywhere, told once, and leaves nothing open", async () => {
    const scene = watch({ targets: { a: good } });
    scene.upstream.send = () => {
      throw new RangeError("secret-detail");
    };
    const run = send(scene);
    await scene.clock.advance(0);
    await expect(run.done).rejects.toThrow(RangeError);
    const route = scene.gateway.match("POST", "/v1/chat/completions", false)!;
    const cause = await run.done.catch((error: unknown) => error);
    scene.gateway.refuse(route, {
      kind: "internal",
      status: 500,
      code: "internal_error",
      message: "",
      retryable: false,
      cause,
    });
    expect(story(scene)).toEqual(["request-start", "attempt-start", "attempt-reject", "request-end"]);
    expect(await scene.count("attempt_failures_total", { kind: "internal" })).toBe(1);
    expect(await scene.count("requests_total", { outcome: "failure", status: 500 })).toBe(1);
    expect(levels(scene)).toEqual(["error: attempt rejected", "error: request ended"]);
    expect(scene.lines[1].facts).toMatchObject({
      cause: { name: "RangeError", stack: expect.stringContaining("section-12") as string },
    });
    expect(JSON.stringify([scene.lines, scene.observed])).not.toContain("secret-detail");
    expect(spanStatuses(scene)).toEqual([
      ["chat", ERROR],
      ["first_chunk", ERROR],
    ]);
  });
});
