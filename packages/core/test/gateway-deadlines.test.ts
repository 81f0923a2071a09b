import { describe, expect, it } from "vitest";
import { chatHealthy } from "../src/testing/chat-streams.js";
import { expectOver, send, stage, type Setup, type Stage } from "./fallback/serving.js";
import { answer, end, mute, stream } from "./scripted-upstream.js";

const healthy = stream(chatHealthy(), end());
const noRetry = { retry: { attempts: 0 } };

/** When each attempt ended, in ms after the request. */
async function ends(
  setup: Setup,
  options: Parameters<typeof send>[1] = {},
): Promise<{ at: number[]; scene: Stage; run: ReturnType<typeof send> }> {
  const scene = stage({ config: noRetry, ...setup });
  const run = send(scene, options);
  await scene.clock.advance(700_000);
  expectOver(scene);
  return { at: scene.upstream.calls.map(({ abortedAt }) => (abortedAt ?? 0) - 1_000), scene, run };
}

describe("totalTimeoutMs", () => {
  const total = (totalTimeoutMs: number, more: object = {}): object => ({
    config: { ...noRetry, timeouts: { totalTimeoutMs, ...more } },
  });

  it("leaves the next target 5 000 ms", async () => {
    const { at, run } = await ends({ targets: { a: mute, b: mute }, ...total(20_000) });
    expect(at).toEqual([15_000, 20_000]);
    expect(run.rejects.map(({ failure }) => failure.message)).toEqual([
      "Request timeout: no attempt answered in time (timeout=15000ms)",
      "Request timeout: no attempt answered in time (timeout=20000ms)",
    ]);
    expect(run.failed?.status).toBe(408);
  });

  it("leaves it what `minAttemptMs` says", async () => {
    expect(
      (await ends({ targets: { a: mute, b: mute, c: mute }, ...total(20_000, { minAttemptMs: 6_000 }) })).at,
    ).toEqual([14_000, 20_000]);
  });

  it("gives an attempt all that is left where that is no more than `minAttemptMs`", async () => {
    const { at, run } = await ends({ targets: { a: mute, b: healthy }, ...total(4_000) });
    expect(at).toEqual([4_000]);
    expect(run.failed?.status).toBe(408);
  });

  it("moves on at the end of a share, whatever the status lists say, and counts nothing", async () => {
    const { run, scene } = await ends({
      targets: { a: mute, b: healthy },
      ...total(20_000),
      model: { fallbackStatusCodes: [] },
    });
    expect(run.released?.status).toBe(200);
    expect(scene.observed.map(({ type }) => type)).not.toContain("cooldown-start");
  });

  it("never gives an attempt more than is left", async () => {
    const { at } = await ends({ targets: { a: mute }, ...total(9_000, { requestTimeoutMs: 60_000 }) });
    expect(at).toEqual([9_000]);
  });

  it("of the target wins over that of the model, and this over the gateway's", async () => {
    const targetConfig = { a: { totalTimeoutMs: 3_000 } };
    const { at } = await ends({
      targets: { a: mute, b: mute },
      ...total(50_000, { minAttemptMs: 0 }),
      model: { totalTimeoutMs: 8_000 },
      targetConfig,
    });
    expect(at).toEqual([3_000, 8_000]);
  });
});

describe("the TTFT timeout on the last target", () => {
  const timeouts = (lastTargetTtft: string): object => ({
    config: { ...noRetry, timeouts: { ttftTimeoutMs: 100, lastTargetTtft } },
  });

  it("runs with `enforce`", async () => {
    expect((await ends({ targets: { a: mute, b: mute }, ...timeouts("enforce") })).at).toEqual([100, 200]);
  });

  it("does not with `exempt`, also where a header sets it", async () => {
    const { at } = await ends(
      { targets: { a: mute, b: mute }, ...timeouts("exempt") },
      { headers: { "x-tfy-ttft-timeout-ms": "50" } },
    );
    expect(at).toEqual([50, 50 + 300_000]);
  });
});

describe("the most specific of a timeout", () => {
  const levels = {
    config: { ...noRetry, timeouts: { ttftTimeoutMs: 400 } },
    model: { ttftTimeoutMs: 300 },
    targetConfig: { a: { ttftTimeoutMs: 200 } },
  };

  it.each([
    ["the header", levels, { "x-tfy-ttft-timeout-ms": "100" }, 100],
    ["the target", levels, {}, 200],
    ["the virtual model", { ...levels, targetConfig: {} }, {}, 300],
    ["the gateway", { config: levels.config }, {}, 400],
  ] as const)("is that of %s", async (_name, setup, headers, at) => {
    expect((await ends({ targets: { a: mute }, ...setup }, { headers })).at).toEqual([at]);
  });
});

describe("a bad header", () => {
  it.each([
    ["x-tfy-metadata", "{"],
    ["x-tfy-provider-name", "a/b"],
    ["x-tfy-ttft-timeout-ms", "1.5"],
    ["x-tfy-request-timeout", "-1"],
  ])("%s is a 400 that names it, before any upstream is called", async (name, value) => {
    const { run, scene } = await ends({ targets: { a: healthy } }, { headers: { [name]: value } });
    expect(run.failed?.status).toBe(400);
    expect(run.failed?.body).toContain(name);
    expect(scene.upstream.calls).toEqual([]);
  });
});

describe("x-tfy-provider-name", () => {
  it("names the provider of the model", async () => {
    const { run } = await ends(
      { targets: { a: healthy, b: healthy }, config: { ...noRetry, directModels: true } },
      { headers: { "x-tfy-provider-name": "b" }, body: { model: "gpt-4o" } },
    );
    expect(run.attempts).toEqual(["b/gpt-4o"]);
  });
});

describe("the trail", () => {
  it("shows skipped targets, which are no attempts", async () => {
    const providers = { a: { type: "anthropic", baseUrl: "http://a.test", apiKey: "k" } };
    const { run } = await ends({ targets: { a: healthy, b: answer(503, {}), c: healthy }, providers });
    expect(run.released?.headers).toMatchObject({ "x-tfy-attempts": "2", "x-tfy-resolved-model": "c/x" });
    expect(run.released?.headers["x-tfy-attempt-trail"]).toMatch(
      /^a\/x;skipped=api, b\/x;status=503;code=[\w-]+;ms=\d+, c\/x;status=200;ms=\d+$/,
    );
  });
});
