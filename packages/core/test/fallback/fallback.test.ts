import { describe, expect, it } from "vitest";
import { anthropicErrorAfterPreamble, anthropicHealthy } from "../../src/testing/anthropic-streams.js";
import { chatEmptyCompletion, chatErrorAfterPreamble, chatHealthy } from "../../src/testing/chat-streams.js";
import {
  responsesFailedAfterCreated,
  responsesHealthy,
  responsesSplitFailure,
} from "../../src/testing/responses-streams.js";
import { end, refusal, stream } from "../scripted-upstream.js";
import { expectOver, request, Run, send, stage } from "./serving.js";

const healthy = stream(chatHealthy(), end());
const noRetry = { retry: { attempts: 0 } };

describe("an in-band failure", () => {
  it.each([
    ["chat", "openai", chatErrorAfterPreamble(), chatHealthy()],
    ["responses", "openai", responsesFailedAfterCreated(), responsesHealthy()],
    ["messages", "anthropic", anthropicErrorAfterPreamble(), anthropicHealthy()],
  ] as const)(
    "of %s gives way to the second target, of which the client gets every byte",
    async (api, type, bad, good) => {
      const scene = stage({ targets: { a: stream(bad), b: stream(good, end()) }, type });
      const run = send(scene, { api });
      await scene.clock.advance(0);
      expect(run.text).toBe(good.join(""));
      expect(run.released).toMatchObject({
        status: 200,
        headers: { "x-tfy-attempts": "2", "x-tfy-resolved-model": "b/x" },
      });
      expect(scene.upstream.to("http://a.test")[0].aborted).toBe(true);
      expect(run.ends).toBe(1);
      expectOver(scene);
    },
  );

  it("of an overloaded Anthropic is a 503", async () => {
    const scene = stage({ targets: { a: stream(anthropicErrorAfterPreamble()) }, type: "anthropic", config: noRetry });
    const run = send(scene, { api: "messages" });
    await scene.clock.advance(0);
    expect(run.failed).toMatchObject({ status: 503, failure: { message: "Overloaded" } });
    expect(JSON.parse(run.failed?.body ?? "")).toMatchObject({
      type: "error",
      error: { type: "overloaded_error", message: "Overloaded" },
    });
  });

  it("that is mapped to 400 is terminal", async () => {
    const chunks = responsesFailedAfterCreated({ code: "context_length_exceeded", message: "Too long" });
    const scene = stage({ targets: { a: stream(chunks), b: stream(responsesHealthy(), end()) } });
    const run = send(scene, { api: "responses" });
    await scene.clock.advance(0);
    expect(run.failed).toMatchObject({
      status: 400,
      failure: { code: "context_length_exceeded", message: "Too long (context_length_exceeded)" },
    });
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
    const scene = stage({
      targets: { a: refusal(429, {}, { "x-ratelimit-limit": "7" }), b: refusal(404, {}, { "x-ratelimit-limit": "9" }) },
      config: noRetry,
    });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.failed?.status).toBe(429);
    expect(run.failed?.headers["x-ratelimit-limit"]).toBe("7");
  });

  it("and Retry-After is the shortest, in whole seconds", async () => {
    const targets = {
      a: refusal(429, {}, { "retry-after": "60" }),
      b: refusal(429, { message: "Please try again in 9.2s." }),
    };
    const scene = stage({ targets, config: noRetry });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.failed?.headers["retry-after"]).toBe("10");
    expect(run.failed?.headers["x-should-retry"]).toBeUndefined();
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
    expect(scene.observed.filter((event) => event.type === "attempt-start").map((event) => event.retry)).toEqual([
      false,
      true,
      true,
    ]);
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

describe("targets that are no candidates", () => {
  it("are passed over", async () => {
    const scene = stage({
      targets: { a: refusal(500), b: healthy, c: healthy },
      targetConfig: { b: { fallbackCandidate: false } },
    });
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
