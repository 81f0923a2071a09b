import { describe, expect, it } from "vitest";
import type { GatewayConfig, ProviderConfig } from "../src/config.js";
import { createGateway, type Gateway } from "../src/gateway.js";
import type { GatewayRequest } from "../src/request.js";
import { ManualClock } from "../src/testing/manual-clock.js";
import { responsesHealthy } from "../src/testing/responses-streams.js";
import { Run } from "./fallback/serving.js";
import { answer, ScriptedUpstream, stream, type Script, type ScriptedCall, end } from "./scripted-upstream.js";

const openai = (name: string): ProviderConfig => ({ type: "openai", baseUrl: `http://${name}.test/v1`, apiKey: "k" });
const anthropic = (name: string): ProviderConfig => ({
  type: "anthropic",
  baseUrl: `http://${name}.test`,
  apiKey: "k",
});

interface World {
  readonly gateway: Gateway;
  readonly upstream: ScriptedUpstream;
  readonly clock: ManualClock;
}

function world(config: Partial<GatewayConfig>, scripts: Record<string, Script | Script[]>): World {
  const clock = new ManualClock();
  const upstream = new ScriptedUpstream(clock, scripts);
  const providers = { a: openai("a"), b: openai("b"), claude: anthropic("claude") };
  const models = {
    m: { targets: [{ target: "a/x" }, { target: "b/y" }] },
    c: { targets: [{ target: "claude/opus" }] },
  };
  const gateway = createGateway({ providers, models, ...config }, { clock, client: upstream, env: {} });
  return { gateway, upstream, clock };
}

async function call(
  { gateway, clock }: World,
  method: string,
  url: string,
  body?: object,
  headers: GatewayRequest["headers"] = {},
): Promise<Run> {
  const bytes = body === undefined ? undefined : new TextEncoder().encode(JSON.stringify(body));
  const run = new Run(gateway, { method, url, headers, body: bytes, signal: new AbortController().signal }, true);
  await clock.advance(100);
  return run;
}

const asked = ({ request: { method, origin, path } }: ScriptedCall): string => `${method} ${origin}${path}`;

describe("endpoints beside generation", () => {
  it.each([
    ["/v1/messages/count_tokens", "c", "http://claude.test", "/v1/messages/count_tokens", "opus"],
    ["/v1/responses/input_tokens", "m", "http://a.test", "/v1/responses/input_tokens", "x"],
    ["/v1/responses/compact", "m", "http://a.test", "/v1/responses/compact", "x"],
    ["/v1/embeddings", "m", "http://a.test", "/v1/embeddings", "x"],
    ["/v1/completions", "m", "http://a.test", "/v1/completions", "x"],
  ])(
    "relays POST %s to the target of the model, with its model",
    async (path, model, origin, upstreamPath, targetModel) => {
      const scene = world({}, { [origin]: answer(200, { input_tokens: 3 }) });
      const run = await call(scene, "POST", path, { model, input: "hi" });
      expect(run.released?.status).toBe(200);
      expect(run.text).toBe('{"input_tokens":3}');
      expect(scene.upstream.calls.map(asked)).toEqual([`POST ${origin}${upstreamPath}`]);
      expect(scene.upstream.calls[0]?.body).toEqual({ model: targetModel, input: "hi" });
    },
  );

  it("sends a count no parameters of a generation", async () => {
    const targets = [{ target: "claude/opus", overrideParams: { max_tokens: 10 }, dropParams: ["top_k"] }];
    const scene = world({ models: { c: { targets } } }, { "http://claude.test": answer(200, { input_tokens: 3 }) });
    await call(scene, "POST", "/v1/messages/count_tokens", { model: "c", top_k: 1, messages: [] });
    expect(scene.upstream.calls[0]?.body).toEqual({ model: "opus", messages: [] });
  });

  it("falls back, too", async () => {
    const scripts = {
      "http://a.test": answer(503, { error: { message: "down" } }),
      "http://b.test": answer(200, { ok: true }),
    };
    const run = await call(world({}, scripts), "POST", "/v1/embeddings", { model: "m", input: "hi" });
    expect(run.text).toBe('{"ok":true}');
    expect(run.attempts).toEqual(["a/x", "b/y"]);
  });

  it("takes a count that works for no sign that the model does", async () => {
    const down = answer(503, { error: { message: "down" } });
    const seen: string[] = [];
    const config = {
      retry: { attempts: 0 },
      observers: [{ onEvent: ({ type }: { type: string }) => void seen.push(type) }],
    };
    const scene = world(config, { "http://claude.test": [down, down, answer(200, {}), answer(200, {})] });
    const body = { model: "c", messages: [] };
    for (const path of ["", "", "/count_tokens"]) await call(scene, "POST", `/v1/messages${path}`, body);
    expect(seen.filter((type) => type.startsWith("cooldown"))).toEqual(["cooldown-start"]);
    await call(scene, "POST", "/v1/messages", body);
    expect(seen.filter((type) => type.startsWith("cooldown"))).toEqual(["cooldown-start", "cooldown-end"]);
  });
});

describe("stored responses", () => {
  const stored = {
    "http://a.test": answer(503, {}),
    "http://b.test": [stream(responsesHealthy(), end()), answer(200, { id: "kept" })],
  };

  async function issued(): Promise<{ scene: World; id: string }> {
    const scene = world({}, stored);
    const run = await call(scene, "POST", "/v1/responses", { model: "m", stream: true, input: "hi" });
    const id = /"id":"(resp[\w-]+)"/.exec(run.text)?.[1] as string;
    return { scene, id };
  }

  it.each([
    ["GET", "", "?include[]=x&stream=false&key=secret"],
    ["DELETE", "", ""],
    ["POST", "/cancel", ""],
  ])("are asked for with %s%s at the target that issued them", async (method, action, query) => {
    const { scene, id } = await issued();
    const run = await call(scene, method, `/v1/responses/${id}${action}${query}`);
    expect(run.text).toBe('{"id":"kept"}');
    const last = scene.upstream.calls.at(-1) as ScriptedCall;
    const kept = query === "" ? "" : "?include%5B%5D=x&stream=false";
    expect(asked(last)).toBe(`${method} http://b.test/v1/responses/${id}${action}${kept}`);
    expect(last.request.body).toBeUndefined();
    expect(last.header("content-type")).toBeUndefined();
  });

  it("that nobody remembers are asked for at the first provider that serves the API", async () => {
    const scene = world(
      {},
      { "http://a.test": answer(404, { error: { message: "no such response", code: "not_found" } }) },
    );
    const run = await call(scene, "GET", "/v1/responses/resp_unknown");
    expect(run.failed?.status).toBe(404);
    expect(run.attempts).toEqual(["a/*"]);
  });

  it.each(["/v1/responses/..", "/v1/responses/a%2fb", "/v1/responses/a/b/c", "/v1/responses/", "/responses/resp_1"])(
    "are not asked for at %s",
    (path) => {
      expect(world({}, {}).gateway.match("GET", path, false)).toBeUndefined();
    },
  );
});

describe("GET /v1/models", () => {
  it("lists the virtual models in OpenAI's shape, without patterns", async () => {
    const models = { m: { targets: [{ target: "a/x" }] }, "gpt-*": { targets: [{ target: "a/*" }] } };
    const scene = world({ models }, {});
    const run = await call(scene, "GET", "/v1/models");
    expect(JSON.parse(run.text)).toMatchObject({
      object: "list",
      data: [{ id: "m", object: "model", owned_by: "first-chunk" }],
    });
    expect(run.released?.headers).toMatchObject({ "content-type": "application/json" });
    expect(scene.upstream.calls).toEqual([]);
  });

  it("lists them in Anthropic's shape for its SDK", async () => {
    const run = await call(world({}, {}), "GET", "/v1/models", undefined, { "anthropic-version": "2023-06-01" });
    expect(JSON.parse(run.text)).toMatchObject({
      data: [{ type: "model", id: "m" }, { id: "c" }],
      has_more: false,
      first_id: "m",
      last_id: "c",
    });
  });

  it("is the host's own where no provider has such a list", () => {
    const providers = { local: { type: "ollama", baseUrl: "http://127.0.0.1:1" } } as const;
    expect(createGateway({ providers }, { env: {} }).match("GET", "/v1/models", false)).toBeUndefined();
  });
});

describe("the warning at start", () => {
  function warnings(config: Partial<GatewayConfig>): object[] {
    const warned: object[] = [];
    const log = (): void => undefined;
    world({ logger: { debug: log, info: log, warn: (facts) => void warned.push(facts), error: log }, ...config }, {});
    return warned;
  }

  it("names each API that one target of a virtual model serves alone", () => {
    const targets = [{ target: "a/x" }, { target: "claude/opus" }, { target: "claude/haiku" }];
    expect(warnings({ models: { mixed: { targets } } })).toEqual([
      { model: "mixed", api: "openai-chat", target: "a/x" },
      { model: "mixed", api: "openai-responses", target: "a/x" },
    ]);
  });

  it("counts a target that is listed twice once", () => {
    expect(warnings({ models: { one: { targets: [{ target: "claude/opus" }, { target: "claude/opus" }] } } })).toEqual([
      { model: "one", api: "anthropic-messages", target: "claude/opus" },
    ]);
  });

  it("is silent where every API has two targets", () => {
    expect(warnings({ models: { m: { targets: [{ target: "a/x" }, { target: "b/y" }] } } })).toEqual([]);
  });
});

describe("a rule", () => {
  it("is named in the events and the log of the requests that it decided", async () => {
    const lines: object[] = [];
    const rules: string[] = [];
    const log = (facts: object): void => void lines.push(facts);
    const scene = world(
      {
        rules: [{ id: "red", when: { metadata: { team: "red" } }, targets: [{ target: "b/z" }] }],
        observers: [{ onEvent: ({ rule }) => void rules.push(rule ?? "none") }],
        logger: { debug: log, info: log, warn: log, error: log },
      },
      { "http://b.test": answer(200, {}) },
    );
    const run = await call(
      scene,
      "POST",
      "/v1/embeddings",
      { model: "m", input: "hi" },
      { "x-tfy-metadata": '{"team":"red"}' },
    );
    expect(run.attempts).toEqual(["b/z"]);
    expect(new Set(rules)).toEqual(new Set(["red"]));
    expect(lines.at(-1)).toMatchObject({ rule: "red", model: "m" });
  });
});
