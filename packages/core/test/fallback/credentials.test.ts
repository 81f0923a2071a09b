import { describe, expect, it } from "vitest";
import { chatHealthy } from "../../src/testing/chat-streams.js";
import { end, mute, refusal, stream } from "../scripted-upstream.js";
import { expectOver, requestEnds, send, stage } from "./serving.js";

const healthy = stream(chatHealthy(), end());
const noRetry = { retry: { attempts: 0 } };

describe("a credential that is refused", () => {
  it.each([401, 402, 403])("with %i moves on, and is masked when nothing is left", async (status) => {
    const scene = stage({
      targets: { a: refusal(status), b: refusal(status, { message: "Incorrect API key: sk-123" }) },
    });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.failed).toMatchObject({
      status: 502,
      failure: { code: "upstream_auth_error" },
      headers: { "x-should-retry": "false" },
    });
    expect(JSON.parse(run.failed?.body ?? "")).toEqual({
      error: {
        message: "The gateway could not authenticate with the model provider.",
        type: "server_error",
        param: null,
        code: "upstream_auth_error",
      },
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
    const scene = stage({
      targets: { a: refusal(401, { code: "invalid_api_key" }) },
      providers: { a: { forwardClientCredentials: true } },
    });
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
    const scene = stage({
      targets: { a: refusal(403, { code: "content_policy_violation" }) },
      config: { fallbackStatusCodes: [] },
    });
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
    const scene = stage({
      targets: { a: [refusal(500), healthy] },
      providers: keyOf(() => Promise.resolve(`key-${(asked += 1)}`)),
    });
    const run = send(scene);
    await scene.clock.advance(100);
    expect(scene.upstream.calls.map((call) => call.header("authorization"))).toEqual(["Bearer key-1", "Bearer key-2"]);
    expect(run.end).toEqual({ type: "finish" });
  });

  it.each([
    [
      "throws",
      () => {
        throw new Error("vault: secret-path");
      },
    ],
    ["rejects", () => Promise.reject(new Error("vault: secret-path"))],
    ["is empty", () => ""],
    ["is no string", () => 7],
    ["is nothing", () => Promise.resolve()],
    ["cannot stand in a header", () => "a\nb"],
  ])("and %s counts as a refused one", async (_name, apiKey) => {
    const scene = stage({ targets: both, providers: keyOf(apiKey) });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.rejects).toMatchObject([
      { target: "a/x", failure: { status: 401, code: "upstream_auth_error", retryable: false } },
    ]);
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
    const scene = stage({
      targets: { a: healthy },
      config: noRetry,
      providers: keyOf(() => new Promise((resolve) => (give = resolve))),
    });
    const run = send(scene);
    await scene.clock.advance(5_000);
    give("late");
    await scene.clock.advance(0);
    expect(run.failed?.status).toBe(502);
    expect(scene.upstream.calls).toHaveLength(0);
    expectOver(scene);
  });

  it("is part of the attempt: its time counts toward the TTFT timeout", async () => {
    const slow = (): Promise<string> =>
      new Promise((resolve) => clock.setTimer(clock.now() + 300, () => resolve("key")));
    const scene = stage({ targets: { a: mute }, config: noRetry, providers: keyOf(slow) });
    const { clock } = scene;
    const run = send(scene, { headers: { "x-tfy-ttft-timeout-ms": "1000" } });
    await clock.advance(1_000);
    expect(run.failed).toMatchObject({ status: 408, failure: { kind: "ttft-timeout" } });
    expect(run.rejects[0].durationMs).toBe(1_000);
  });

  it("beyond the total timeout starts no attempt", async () => {
    const slow = (): Promise<string> =>
      new Promise((resolve) => clock.setTimer(clock.now() + 300, () => resolve("key")));
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
