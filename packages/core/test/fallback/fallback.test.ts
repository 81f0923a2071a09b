import { describe, expect, it } from "vitest";
import { anthropicErrorAfterPreamble, anthropicHealthy } from "../../src/testing/anthropic-streams.js";
import { chatEmptyCompletion, chatErrorAfterPreamble, chatHealthy } from "../../src/testing/chat-streams.js";
import { responsesFailedAfterCreated, responsesHealthy, responsesSplitFailure } from "../../src/testing/responses-streams.js";
import { answer, broken, connected, data, end, head, mute, stream, type Script } from "../scripted-upstream.js";
import { expectOver, requestEnds, request, Run, send, stage } from "./serving.js";

const healthy = stream(chatHealthy(), end());
const noRetry = { retry: { attempts: 0 } };

function refusal(status: number, error: object = {}, headers = {}): Script {
  return answer(status, { error: { message: `refused with ${status}`, type: "some_error", param: null, code: null, ...error } }, headers);
}

describe("an in-band failure", () => {
  it.each([
    ["chat", "openai", chatErrorAfterPreamble(), chatHealthy()],
    ["responses", "openai", responsesFailedAfterCreated(), responsesHealthy()],
    ["messages", "anthropic", anthropicErrorAfterPreamble(), anthropicHealthy()],
  ] as const)("of %s gives way to the second target, of which the client gets every byte", async (api, type, bad, good) => {
    const scene = stage({ targets: { a: stream(bad), b: stream(good, end()) }, type });
    const run = send(scene, { api });
    await scene.clock.advance(0);
    expect(run.text).toBe(good.join(""));
    expect(run.released).toMatchObject({ status: 200, headers: { "x-tfy-attempts": "2", "x-tfy-resolved-model": "b/x" } });
    expect(scene.upstream.to("http://a.test")[0].aborted).toBe(true);
    expect(run.ends).toBe(1);
    expectOver(scene);
  });

  it("of an overloaded Anthropic is a 503", async () => {
    const scene = stage({ targets: { a: stream(anthropicErrorAfterPreamble()) }, type: "anthropic", config: noRetry });
    const run = send(scene, { api: "messages" });
    await scene.clock.advance(0);
    expect(run.failed).toMatchObject({ status: 503, failure: { message: "Overloaded" } });
    expect(JSON.parse(run.failed?.body ?? "")).toMatchObject({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } });
  });

  it("that is mapped to 400 is terminal", async () => {
    const chunks = responsesFailedAfterCreated({ code: "context_length_exceeded", message: "Too long" });
    const scene = stage({ targets: { a: stream(chunks), b: stream(responsesHealthy(), end()) } });
    const run = send(scene, { api: "responses" });
    await scene.clock.advance(0);
    expect(run.failed).toMatchObject({ status: 400, failure: { code: "context_length_exceeded", message: "Too long (context_length_exceeded)" } });
    expect(run.attempts).toEqual(["a/x"]);
    expectOver(scene);
  });

  it("in two parts is decided by the second", async () => {
    const scene = stage({ targets: { a: stream(responsesSplitFailure()), b: healthy } });
    const run = send(scene, { api: "responses" });
    await scene.clock.advance(0);
    expect(run.failed).toMatchObject({ status: 400, failure: { code: "content_policy_violation" } });
  });
});

describe("all targets fail", () => {
  it("and the client gets the last failure, with the trail", async () => {
    const scene = stage({ targets: { a: refusal(500), b: refusal(503, { message: "second" }) }, config: noRetry });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.failed).toMatchObject({ status: 503, failure: { message: "second" } });
    expect(run.failed?.headers).toMatchObject({
      "content-type": "application/json",
      "x-tfy-attempts": "2",
      "x-tfy-attempt-trail": "a/x;status=500;code=some_error;ms=0, b/x;status=503;code=some_error;ms=0",
      "x-tfy-resolved-model": "b/x",
    });
    expectOver(scene);
  });

  it("and an earlier one that may pass is not hidden by a 404 of a fallback", async () => {
    const scene = stage({ targets: { a: refusal(429, {}, { "x-ratelimit-limit": "7" }), b: refusal(404, {}, { "x-ratelimit-limit": "9" }) }, config: noRetry });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.failed?.status).toBe(429);
    expect(run.failed?.headers["x-ratelimit-limit"]).toBe("7");
  });

  it("and Retry-After is the shortest, in whole seconds", async () => {
    const targets = { a: refusal(429, {}, { "retry-after": "60" }), b: refusal(429, { message: "Please try again in 9.2s." }) };
    const scene = stage({ targets, config: noRetry });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.failed?.headers["retry-after"]).toBe("10");
    expect(run.failed?.headers["x-should-retry"]).toBeUndefined();
  });
});

describe("a refusal before the stream", () => {
  it.each([400, 409, 413, 422])("%i ends the request", async (status) => {
    const scene = stage({ targets: { a: refusal(status), b: healthy } });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.failed).toMatchObject({ status, headers: { "x-should-retry": "false" } });
    expect(run.attempts).toEqual(["a/x"]);
    expectOver(scene);
  });

  it.each([401, 402, 403, 404, 408, 424, 429, 500, 502, 503, 529])("%i moves on", async (status) => {
    const scene = stage({ targets: { a: refusal(status), b: healthy } });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.attempts).toEqual(["a/x", "b/x"]);
    expect(run.end).toEqual({ type: "finish" });
    expectOver(scene);
  });

  it("a redirect is not followed and is a 502", async () => {
    const scene = stage({ targets: { a: { steps: [connected(), head(302, { location: "http://evil.test/" }), end()] } }, config: noRetry });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.failed).toMatchObject({ status: 502, failure: { code: "upstream_invalid_body" } });
  });

  it("with a body without end is read in part", async () => {
    const scene = stage({ targets: { a: { steps: [connected(), head(500, {}), data("x".repeat(70_000))] } }, config: noRetry });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.failed?.status).toBe(500);
    expectOver(scene);
  });

  it("that breaks off keeps its status", async () => {
    const scene = stage({ targets: { a: { steps: [connected(), head(418, {}), data('{"error":'), broken()] } } });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.failed?.status).toBe(418);
  });
});

describe("a network failure", () => {
  it.each([
    ["before the connection", { steps: [broken()] }, "upstream_connect_error", "network"],
    ["before the head", { steps: [connected(), broken()] }, "upstream_error", "network"],
    ["before the first event", { steps: [connected(), head(), broken()] }, "upstream_empty_stream", "empty-stream"],
    ["after an event", stream([chatHealthy()[0]], broken()), "upstream_truncated_stream", "truncated-stream"],
  ])("%s moves on", async (_name, script, code, kind) => {
    const scene = stage({ targets: { a: script, b: healthy } });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.rejects).toMatchObject([{ failure: { status: 502, code, kind } }]);
    expect(run.end).toEqual({ type: "finish" });
    expectOver(scene);
  });
});

describe("retries", () => {
  it("wait with backoff and jitter", async () => {
    const scene = stage({ targets: { a: [refusal(500), refusal(503), healthy] } });
    const run = send(scene);
    await scene.clock.advance(49);
    expect(scene.upstream.calls).toHaveLength(1);
    await scene.clock.advance(101);
    expect(scene.upstream.calls.map((call) => call.startedAt)).toEqual([1000, 1050, 1150]);
    expect(run.released?.headers["x-tfy-attempts"]).toBe("3");
    expect(scene.observed.filter((event) => event.type === "attempt-start").map((event) => event.retry)).toEqual([false, true, true]);
    expectOver(scene);
  });

  it("wait as long as the provider asks", async () => {
    const scene = stage({ targets: { a: [refusal(429, {}, { "retry-after-ms": "1234" }), healthy] } });
    const run = send(scene);
    await scene.clock.advance(1234);
    expect(scene.upstream.calls[1].startedAt).toBe(2234);
    expect(run.end).toEqual({ type: "finish" });
  });

  it("are not made where the provider says so, or asks for more time than is given", async () => {
    for (const headers of [{ "x-should-retry": "false" }, { "retry-after": "9" }]) {
      const scene = stage({ targets: { a: [refusal(429, {}, headers), healthy] } });
      const run = send(scene);
      await scene.clock.advance(60_000);
      expect(scene.upstream.calls).toHaveLength(1);
      expect(run.failed?.status).toBe(429);
      expectOver(scene);
    }
  });

  it("send the same body again", async () => {
    const scene = stage({ targets: { a: [refusal(500), healthy] } });
    send(scene, { body: { messages: [{ role: "user", content: "hi" }] } });
    await scene.clock.advance(100);
    const [first, second] = scene.upstream.calls;
    expect(second.request).toEqual(first.request);
    expect(first.body).toEqual({ model: "x", stream: true, messages: [{ role: "user", content: "hi" }] });
  });

  it("of an answer that is empty and billed are not made: the next target is tried, the last is released", async () => {
    const empty = stream(chatEmptyCompletion({ outputTokens: 5 }), end());
    const scene = stage({ targets: { a: empty, b: empty } });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.attempts).toEqual(["a/x", "b/x"]);
    expect(run.text).toBe(chatEmptyCompletion({ outputTokens: 5 }).join(""));
    expectOver(scene);
  });
});

describe("a credential that is refused", () => {
  it.each([401, 402, 403])("with %i moves on, and is masked when nothing is left", async (status) => {
    const scene = stage({ targets: { a: refusal(status), b: refusal(status, { message: "Incorrect API key: sk-123" }) } });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.failed).toMatchObject({ status: 502, failure: { code: "upstream_auth_error" }, headers: { "x-should-retry": "false" } });
    expect(JSON.parse(run.failed?.body ?? "")).toEqual({
      error: { message: "The gateway could not authenticate with the model provider.", type: "server_error", param: null, code: "upstream_auth_error" },
    });
    expect(JSON.stringify(run.failed?.headers)).not.toContain("sk-123");
    expect(run.failed?.headers["x-tfy-attempt-trail"]).toContain(`b/x;status=${status}`);
    expect(run.rejects.map((reject) => reject.failure.status)).toEqual([status, status]);
    expect(requestEnds(scene)).toMatchObject([{ status: 502, outcome: "failure", failure: { status } }]);
    expectOver(scene);
  });

  it("in the stream is masked too", async () => {
    const chunk = 'data: {"error":{"message":"bad key","code":401}}\n\n';
    const scene = stage({ targets: { a: stream([chunk]) } });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.rejects[0].failure.status).toBe(401);
    expect(run.failed?.status).toBe(502);
  });

  it("was the client's own: it is told", async () => {
    const scene = stage({ targets: { a: refusal(401, { code: "invalid_api_key" }) }, providers: { a: { forwardClientCredentials: true } } });
    const run = send(scene, { headers: { authorization: "Bearer theirs" } });
    await scene.clock.advance(0);
    expect(scene.upstream.calls[0].header("authorization")).toBe("Bearer theirs");
    expect(run.failed).toMatchObject({ status: 401, failure: { code: "invalid_api_key" } });
  });

  it("was ours although the client sent one: it is not told", async () => {
    const scene = stage({ targets: { a: refusal(401) } });
    const run = send(scene, { headers: { authorization: "Bearer theirs" } });
    await scene.clock.advance(0);
    expect(scene.upstream.calls[0].header("authorization")).toBe("Bearer key-of-a");
    expect(run.failed?.status).toBe(502);
  });

  it("a 403 for policy passes through", async () => {
    const scene = stage({ targets: { a: refusal(403, { code: "content_policy_violation" }) }, config: { fallbackStatusCodes: [] } });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.failed?.status).toBe(403);
  });
});

describe("a key that is fetched", () => {
  const keyOf = (apiKey: unknown) => ({ a: { apiKey } });
  const both = { a: healthy, b: healthy };

  it("is asked for at every attempt", async () => {
    let asked = 0;
    const scene = stage({ targets: { a: [refusal(500), healthy] }, providers: keyOf(() => Promise.resolve(`key-${(asked += 1)}`)) });
    const run = send(scene);
    await scene.clock.advance(100);
    expect(scene.upstream.calls.map((call) => call.header("authorization"))).toEqual(["Bearer key-1", "Bearer key-2"]);
    expect(run.end).toEqual({ type: "finish" });
  });

  it.each([
    ["throws", () => { throw new Error("vault: secret-path"); }],
    ["rejects", () => Promise.reject(new Error("vault: secret-path"))],
    ["is empty", () => ""],
    ["is no string", () => 7],
    ["is nothing", () => Promise.resolve()],
    ["cannot stand in a header", () => "a\nb"],
  ])("and %s counts as a refused one", async (_name, apiKey) => {
    const scene = stage({ targets: both, providers: keyOf(apiKey) });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.rejects).toMatchObject([{ target: "a/x", failure: { status: 401, code: "upstream_auth_error", retryable: false } }]);
    expect(run.rejects[0].failure.message).not.toContain("secret");
    expect(scene.upstream.to("http://a.test")).toHaveLength(0);
    expect(run.end).toEqual({ type: "finish" });
    expectOver(scene);
  });

  it("and never comes counts as a refused one when connecting would have taken too long", async () => {
    const scene = stage({ targets: both, providers: keyOf(() => new Promise(() => undefined)) });
    const run = send(scene);
    await scene.clock.advance(4_999);
    expect(run.rejects).toEqual([]);
    await scene.clock.advance(1);
    expect(run.rejects).toMatchObject([{ failure: { status: 401 }, durationMs: 5_000 }]);
    expect(run.end).toEqual({ type: "finish" });
    expectOver(scene);
  });

  it("and comes too late is not used", async () => {
    let give: (key: string) => void = () => undefined;
    const scene = stage({ targets: { a: healthy }, config: noRetry, providers: keyOf(() => new Promise((resolve) => (give = resolve))) });
    const run = send(scene);
    await scene.clock.advance(5_000);
    give("late");
    await scene.clock.advance(0);
    expect(run.failed?.status).toBe(502);
    expect(scene.upstream.calls).toHaveLength(0);
    expectOver(scene);
  });

  it("is part of the attempt: its time counts toward the TTFT timeout", async () => {
    const slow = (): Promise<string> => new Promise((resolve) => clock.setTimer(clock.now() + 300, () => resolve("key")));
    const scene = stage({ targets: { a: mute }, config: noRetry, providers: keyOf(slow) });
    const { clock } = scene;
    const run = send(scene, { headers: { "x-tfy-ttft-timeout-ms": "1000" } });
    await clock.advance(1_000);
    expect(run.failed).toMatchObject({ status: 408, failure: { kind: "ttft-timeout" } });
    expect(run.rejects[0].durationMs).toBe(1_000);
  });

  it("beyond the total timeout starts no attempt", async () => {
    const slow = (): Promise<string> => new Promise((resolve) => clock.setTimer(clock.now() + 300, () => resolve("key")));
    const scene = stage({ targets: both, config: { timeouts: { totalTimeoutMs: 200 } }, providers: keyOf(slow) });
    const { clock } = scene;
    const run = send(scene);
    await clock.advance(300);
    expect(run.failed).toMatchObject({ status: 408, failure: { kind: "total-timeout" } });
    expect(scene.upstream.calls).toHaveLength(0);
    expectOver(scene);
  });

  it("and the client leaves: nothing more is done", async () => {
    const left = new AbortController();
    let seen: AbortSignal | undefined;
    const apiKey = ({ signal }: { signal: AbortSignal }): Promise<string> => {
      seen = signal;
      return new Promise(() => undefined);
    };
    const scene = stage({ targets: both, providers: keyOf(apiKey) });
    const run = send(scene, { signal: left.signal });
    await scene.clock.advance(10);
    left.abort();
    await run.done;
    expect(seen?.aborted).toBe(true);
    expect(scene.upstream.calls).toHaveLength(0);
    expectOver(scene);
  });
});

describe("a request whose body cannot be written", () => {
  it("is a 400 before any upstream is called", async () => {
    const scene = stage({ targets: { a: healthy } });
    const body = { parsed: { model: "m", stream: true, seed: 1n } };
    const run = new Run(scene.gateway, { ...request(), body }, true);
    await run.done;
    expect(run.failed?.status).toBe(400);
    expect(scene.upstream.calls).toHaveLength(0);
  });
});

describe("an HTTP client that throws", () => {
  it("is a bug that is recorded and thrown, and leaves no timer behind", async () => {
    const scene = stage({ targets: { a: healthy } });
    scene.upstream.send = () => {
      throw new TypeError("a bug");
    };
    const run = send(scene);
    await expect(run.done).rejects.toThrow("a bug");
    expect(requestEnds(scene)).toMatchObject([{ outcome: "failure", status: 500, failure: { kind: "internal" } }]);
    expectOver(scene);
  });
});

describe("targets that are no candidates", () => {
  it("are passed over", async () => {
    const scene = stage({ targets: { a: refusal(500), b: healthy, c: healthy }, targetConfig: { b: { fallbackCandidate: false } } });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.attempts).toEqual(["a/x", "c/x"]);
  });

  it("are tried where they come first", async () => {
    const scene = stage({ targets: { a: healthy, b: healthy }, targetConfig: { a: { fallbackCandidate: false } } });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.attempts).toEqual(["a/x"]);
  });
});

describe("bytes in an encoding that nobody knows", () => {
  it("fail the attempt, not the client", async () => {
    const scene = stage({ targets: { a: { steps: [connected(), head(200, { "content-encoding": "x-lz" }), data("\u0001\u0002")] }, b: healthy } });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.rejects).toHaveLength(1);
    expect(run.text).toBe(chatHealthy().join(""));
  });
});
