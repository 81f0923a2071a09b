import { describe, expect, it } from "vitest";
import type { GatewayConfig } from "../src/config.js";
import { createGateway } from "../src/gateway.js";
import { chatHealthy } from "../src/testing/chat-streams.js";
import { ManualClock } from "../src/testing/manual-clock.js";
import { request, Run, type RequestOptions } from "./fallback/serving.js";
import { end, ScriptedUpstream, stream } from "./scripted-upstream.js";

const providers = {
  one: { type: "openai", baseUrl: "http://one.test/v1", apiKey: "k1" },
  two: { type: "openai-compatible", baseUrl: "http://two.test/v1", apiKey: "k2" },
  claude: { type: "anthropic", baseUrl: "http://claude.test", apiKey: "k3" },
} as const;
const whole = stream(chatHealthy(), end());

async function ask(
  config: Partial<GatewayConfig>,
  { url, ...options }: RequestOptions & { url?: string },
): Promise<{ run: Run; upstream: ScriptedUpstream }> {
  const clock = new ManualClock();
  const upstream = new ScriptedUpstream(clock, {
    "http://one.test": whole,
    "http://two.test": whole,
    "http://claude.test": whole,
  });
  const gateway = createGateway({ providers, ...config }, { clock, client: upstream, env: {} });
  const asked = request(options);
  const run = new Run(gateway, { ...asked, url: url ?? asked.url }, true);
  await clock.advance(0);
  return { run, upstream };
}

const models = {
  fast: { targets: [{ target: "one/gpt", priority: 1 }, { target: "two/qwen" }] },
  "claude-*": { targets: [{ target: "claude/*" }] },
  "claude-opus-*": { targets: [{ target: "claude/opus" }] },
  "claude-opus-4": { targets: [{ target: "claude/opus-4-exact" }] },
} as const;

describe("the model of a request", () => {
  it("is a virtual model, whose first target by priority gets its own model", async () => {
    const { upstream } = await ask({ models }, { body: { model: "fast" } });
    expect(upstream.calls.map((call) => [call.request.origin, call.body["model"]])).toEqual([
      ["http://two.test", "qwen"],
    ]);
  });

  it.each([
    ["claude-haiku", "claude-haiku"],
    ["claude-opus-3", "opus"],
    ["claude-opus-4", "opus-4-exact"],
    ["claude-", "claude-"],
  ])("%s is matched by the nearest pattern and sent as %s", async (model, sent) => {
    const { upstream } = await ask({ models }, { api: "messages", body: { model } });
    expect(upstream.calls.map((call) => call.body["model"])).toEqual([sent]);
  });

  it.each(["unknown", "FAST", "fast ", "claude", "one/gpt", "__proto__", "constructor", "*", "fast\u0000"])(
    "%j is unknown: a 404 that lists nothing",
    async (model) => {
      const { run, upstream } = await ask({ models }, { body: { model } });
      expect(run.failed).toMatchObject({
        status: 404,
        failure: { code: "model_not_found" },
        headers: { "x-should-retry": "false" },
      });
      expect(run.failed?.body).not.toMatch(/qwen|opus|two/);
      expect(upstream.calls).toHaveLength(0);
    },
  );

  it.each([[undefined], [null], [""], [7], [["fast"]], [{ toString: "fast" }]])("%j is a 400", async (model) => {
    const { run, upstream } = await ask({ models }, { body: { model } });
    expect(run.failed).toMatchObject({ status: 400, failure: { param: "model" } });
    expect(upstream.calls).toHaveLength(0);
  });

  it.each([["true"], [1], [{}], [[]]])("with `stream` %j is a 400: it would stream past the gate", async (value) => {
    const { run, upstream } = await ask({ models }, { body: { model: "fast", stream: value } });
    expect(run.failed).toMatchObject({ status: 400, failure: { param: "stream" } });
    expect(upstream.calls).toHaveLength(0);
  });

  it("of an endless name makes no endless answer", async () => {
    const { run } = await ask({ models }, { body: { model: "x".repeat(100_000) } });
    expect(run.failed?.body.length).toBeLessThan(1000);
  });

  it("without `models` is a provider and its model, split at the first slash", async () => {
    const { upstream } = await ask({}, { body: { model: "two/org/model" } });
    expect(upstream.calls.map((call) => [call.request.origin, call.body["model"]])).toEqual([
      ["http://two.test", "org/model"],
    ]);
  });

  it.each(["nobody/gpt", "one/", "/gpt", "one", "/"])("%j is unknown without `models`", async (model) => {
    const { run } = await ask({}, { body: { model } });
    expect(run.failed?.status).toBe(404);
  });

  it("is what `directModels` allows", async () => {
    const config = { models, directModels: ["one/gpt-*"] };
    expect((await ask(config, { body: { model: "one/gpt-5" } })).upstream.calls).toHaveLength(1);
    expect((await ask(config, { body: { model: "one/o3" } })).run.failed?.status).toBe(404);
    expect((await ask(config, { body: { model: "two/gpt-5" } })).run.failed?.status).toBe(404);
  });
});

describe("the API of a request", () => {
  it("that no target of the model serves is a 400 that says so", async () => {
    const { run, upstream } = await ask({ models }, { api: "messages", body: { model: "fast" } });
    expect(run.failed).toMatchObject({ status: 400, failure: { code: "api_not_served" } });
    expect(run.failed?.body).toContain("/v1/messages");
    expect(JSON.parse(run.failed?.body ?? "")).toMatchObject({ type: "error" });
    expect(upstream.calls).toHaveLength(0);
  });

  it("skips the targets that do not serve it", async () => {
    const { upstream } = await ask({ models }, { api: "responses", body: { model: "fast" } });
    expect(upstream.calls.map((call) => call.request.origin)).toEqual(["http://one.test"]);
  });

  it("that is not served by a provider which the client names is a 400", async () => {
    const { run } = await ask({}, { api: "responses", body: { model: "two/x" } });
    expect(run.failed).toMatchObject({ status: 400, failure: { code: "api_not_served" } });
  });
});

describe("match()", () => {
  const gateway = createGateway(
    { providers: { one: providers.one } },
    { client: new ScriptedUpstream(new ManualClock(), {}), env: {} },
  );

  it.each([
    ["POST", "/v1/chat/completions", false, true],
    ["POST", "/v1/chat/completions?a=b", false, true],
    ["POST", "/v1/responses", false, true],
    ["GET", "/v1/chat/completions", false, false],
    ["post", "/v1/chat/completions", false, false],
    ["POST", "/v1/chat/completions/", false, false],
    ["POST", "/V1/chat/completions", false, false],
    ["POST", "//v1/chat/completions", false, false],
    ["POST", "/v1/../v1/chat/completions", false, false],
    ["POST", "/v1/chat%2Fcompletions", false, false],
    ["POST", "http://evil.test/v1/chat/completions", false, false],
    ["POST", "/chat/completions", false, false],
    ["POST", "/chat/completions", true, true],
    ["POST", "/v1/chat/completions", true, true],
    ["POST", "/v1/messages", false, false],
    ["POST", "/messages", true, false],
    ["POST", "", false, false],
    ["POST", "?/v1/responses", false, false],
  ])("%s %s (mounted: %s): %s", (method, url, mounted, expected) => {
    expect(gateway.match(method, url, mounted) !== undefined).toBe(expected);
  });
});

describe("a request that is not the gateway's", () => {
  it("is a mistake of the adapter", async () => {
    const { run } = await ask({ models }, { body: {}, url: "/other" });
    await expect(run.done).rejects.toThrow("match()");
  });
});

describe("what a target changes", () => {
  const changing = {
    m: {
      targets: [
        {
          target: "one/gpt",
          overrideParams: { temperature: 0, metadata: { team: "a" } },
          dropParams: ["logprobs"],
          headersOverride: { set: { "x-team": "a" }, remove: ["openai-beta"] },
        },
        { target: "two/qwen" },
      ],
    },
  };

  it("is in its request alone", async () => {
    const options = { headers: { "openai-beta": "b", cookie: "c" }, body: { temperature: 1, logprobs: true } };
    const { upstream } = await ask({ models: changing }, options);
    const [call] = upstream.calls;
    expect(call.body).toEqual({ model: "gpt", stream: true, temperature: 0, metadata: { team: "a" } });
    expect([call.header("x-team"), call.header("openai-beta"), call.header("cookie")]).toEqual([
      "a",
      undefined,
      undefined,
    ]);
    expect(call.request).toMatchObject({ method: "POST", origin: "http://one.test", path: "/v1/chat/completions" });
  });
});

describe("a body", () => {
  it("is sent as it came but for the model", async () => {
    const body = new TextEncoder().encode('{ "stream" :true,"model": "fast" , "seed":12345678901234567890}');
    const clock = new ManualClock();
    const upstream = new ScriptedUpstream(clock, { "http://two.test": whole });
    const gateway = createGateway({ providers, models }, { clock, client: upstream, env: {} });
    await Promise.all([new Run(gateway, { ...request(), body }, true).done, clock.advance(0)]);
    expect(Buffer.from(upstream.calls[0].request.body ?? []).toString()).toBe(
      '{ "stream" :true,"model": "qwen" , "seed":12345678901234567890}',
    );
  });

  it.each([undefined, new Uint8Array(0), new TextEncoder().encode("{"), { parsed: 7 }])(
    "that is no JSON object is a 400 (%#)",
    async (body) => {
      const clock = new ManualClock();
      const gateway = createGateway({ providers, models }, { clock, client: new ScriptedUpstream(clock, {}), env: {} });
      const run = new Run(gateway, { ...request(), body }, true);
      await run.done;
      expect(run.failed).toMatchObject({
        status: 400,
        headers: { "content-type": "application/json", "x-tfy-attempts": "0" },
      });
    },
  );
});
