import { describe, expect, test } from "vitest";

import type { GatewayConfig } from "../../src/config.js";
import { resolveConfig } from "../../src/config/resolve.js";
import { isConfigError, type ConfigError } from "../../src/errors.js";

/** Whatever a user may write: the types would refuse most rows. */
type Loose = Record<string, unknown>;

const anthropic = { type: "anthropic", apiKey: "sk-secret" };
const local = { type: "openai-compatible", baseUrl: "http://127.0.0.1:8000/v1" };
const bedrock = { type: "bedrock", apiKey: "sk-secret", region: "eu-central-1" };

function problemOf(config: unknown, env: Record<string, string> = {}): ConfigError {
  try {
    resolveConfig(config as GatewayConfig, env);
  } catch (error) {
    if (isConfigError(error)) return error;
    throw error;
  }
  throw new Error("the configuration was accepted");
}

const provider = (fields: Loose): Loose => ({ providers: { p: fields } });
const top = (fields: Loose): Loose => ({ providers: { anthropic, local }, ...fields });
const model = (fields: Loose, name = "fast-chat"): Loose =>
  top({ models: { [name]: { targets: [{ target: "local/a" }], ...fields } } });
const target = (fields: Loose, routing = "priority"): Loose =>
  model({ routing, targets: [{ target: "local/a", ...fields }] });
const rule = (fields: Loose): Loose =>
  top({ rules: [{ id: "a", when: {}, targets: [{ target: "local/a" }], ...fields }] });

const first = "models.fast-chat.targets[0]";

type Row = readonly [config: unknown, path: string, remedy: string | RegExp];

const providerRows: readonly Row[] = [
  [undefined, "", "an object"],
  ["config", "", "must be an object"],
  [{}, "providers", "is required"],
  [{ providers: {} }, "providers", "at least one provider"],
  [{ providers: new Map([["p", anthropic]]) }, "providers", "plain object"],
  [{ providers: [anthropic] }, "providers", "plain object"],
  [{ providers: { "a/b": anthropic } }, "providers.a/b", "must not contain `/`"],
  [{ providers: { "": anthropic } }, 'providers[""]', "needs a name"],
  [{ providers: { "a*": anthropic } }, "providers.a*", "must not contain `*`"],
  [{ providers: { "a b": anthropic } }, 'providers["a b"]', "visible ASCII"],
  [{ providers: JSON.parse('{"__proto__":{"type":"ollama"}}') }, "providers.__proto__", "choose another"],
  [provider({ ...anthropic, type: undefined }), "providers.p.type", '"anthropic-compatible"'],
  [provider({ ...anthropic, type: "antropic" }), "providers.p.type", 'Did you mean "anthropic"?'],
  [provider({ ...anthropic, base_url: "http://h" }), "providers.p.base_url", 'Did you mean "baseUrl"?'],
  [provider({ ...anthropic, baseURL: "http://h" }), "providers.p.baseURL", 'Did you mean "baseUrl"?'],
  [provider({ ...anthropic, qqqqqqqqqq: 1 }), "providers.p.qqqqqqqqqq", /Known are "type", .* and "sign"/],
  [provider({ type: "openai-compatible" }), "providers.p.baseUrl", "is missing"],
  [provider({ type: "anthropic-compatible" }), "providers.p.baseUrl", "without the version"],
  [provider({ type: "ollama" }), "providers.p.baseUrl", "11434"],
  [provider({ type: "azure", apiKey: "k" }), "providers.p.baseUrl", "origin of the resource"],
  [provider({ type: "bedrock", apiKey: "k" }), "providers.p.baseUrl", "`region`"],
  [provider({ ...local, baseUrl: "127.0.0.1:8000" }), "providers.p.baseUrl", "http:// or https://"],
  [provider({ ...local, baseUrl: "ftp://host/v1" }), "providers.p.baseUrl", "http:// or https://"],
  [provider({ ...local, baseUrl: "" }), "providers.p.baseUrl", "http:// or https://"],
  [provider({ ...local, baseUrl: 8000 }), "providers.p.baseUrl", "as a string"],
  [provider({ ...local, baseUrl: "http://u:pw@host/v1" }), "providers.p.baseUrl", "user name or password"],
  [provider({ ...local, baseUrl: "http://host/v1?a=b" }), "providers.p.baseUrl", "query"],
  [provider({ ...local, baseUrl: "http://host/v1#a" }), "providers.p.baseUrl", "hash"],
  [provider({ ...local, baseUrl: "http://host//v1" }), "providers.p.baseUrl", "empty path segment"],
  [
    provider({ ...local, baseUrl: "http://host/v1/chat/completions" }),
    "providers.p.baseUrl",
    "leave /chat/completions off",
  ],
  [provider({ ...anthropic, baseUrl: "https://host/v1" }), "providers.p.baseUrl", "leave /v1 off"],
  [provider({ ...anthropic, baseUrl: "https://host/v1/" }), "providers.p.baseUrl", "leave /v1 off"],
  [provider({ type: "google", apiKey: "k", baseUrl: "https://h/v1beta" }), "providers.p.baseUrl", "leave /v1beta off"],
  [provider({ type: "azure", apiKey: "k", baseUrl: "https://h/openai/v1" }), "providers.p.baseUrl", "/openai/v1 off"],
  [provider({ type: "ollama", baseUrl: "http://h/api" }), "providers.p.baseUrl", "leave /api off"],
  [provider({ type: "openai" }), "providers.p.apiKey", "forwardClientCredentials"],
  [provider({ type: "anthropic" }), "providers.p.apiKey", "is missing"],
  [provider({ type: "google" }), "providers.p.apiKey", "is missing"],
  [provider({ type: "azure", baseUrl: "https://h" }), "providers.p.apiKey", "is missing"],
  [provider({ type: "bedrock", region: "eu-central-1" }), "providers.p.apiKey", "`sign`"],
  [provider({ type: "openai", apiKey: undefined }), "providers.p.apiKey", "environment variable"],
  [provider({ ...local, apiKey: undefined }), "providers.p.apiKey", "environment variable"],
  [provider({ ...local, apiKey: "" }), "providers.p.apiKey", "environment variable"],
  [provider({ ...local, apiKey: " " }), "providers.p.apiKey", "empty"],
  [provider({ type: "openai", apiKey: undefined, forwardClientCredentials: true }), "providers.p.apiKey", "undefined"],
  [provider({ ...anthropic, apiKey: 12_345 }), "providers.p.apiKey", "a string or a function"],
  [provider({ ...anthropic, apiKey: "sk-secret\n" }), "providers.p.apiKey", "line break"],
  [provider({ ...anthropic, apiKey: "sk-\u2026" }), "providers.p.apiKey", "Latin-1"],
  [
    provider({ ...anthropic, forwardClientCredentials: "yes" }),
    "providers.p.forwardClientCredentials",
    "true or false",
  ],
  [provider({ ...anthropic, headers: { "x y": "1" } }), 'providers.p.headers["x y"]', "not a header name"],
  [provider({ ...anthropic, headers: { Host: "a" } }), "providers.p.headers.Host", "belongs to the connection"],
  [provider({ ...anthropic, headers: { "x-a": "1\r\nx-b: 2" } }), "providers.p.headers.x-a", "line break"],
  [provider({ ...anthropic, headers: { "x-a": 1 } }), "providers.p.headers.x-a", "must be a string"],
  [provider({ ...anthropic, headers: { "x-a": "1", "X-A": "2" } }), "providers.p.headers.X-A", "twice"],
  [provider({ ...anthropic, headers: JSON.parse('{"__proto__":"1"}') }), "providers.p.headers.__proto__", "another"],
  [provider({ ...anthropic, forwardHeaders: ["Cookie"] }), "providers.p.forwardHeaders[0]", "never passed on"],
  [provider({ ...anthropic, forwardHeaders: ["x-a", "te"] }), "providers.p.forwardHeaders[1]", "connection"],
  [provider({ ...anthropic, forwardHeaders: ["authorization"] }), "providers.p.forwardHeaders[0]", "forwardClient"],
  [provider({ ...anthropic, forwardHeaders: ["OpenAI-Project"] }), "providers.p.forwardHeaders[0]", "`headers`"],
  [provider({ ...anthropic, forwardHeaders: "x-a" }), "providers.p.forwardHeaders", "array of header names"],
  [provider({ ...anthropic, protocols: ["openai"] }), "providers.p.protocols[0]", '"openai-responses"'],
  [provider({ ...anthropic, protocols: [] }), "providers.p.protocols", "at least one"],
  [provider({ ...anthropic, apiVersion: "2024-10-21" }), "providers.p.apiVersion", 'type "azure" only'],
  [provider({ ...anthropic, region: "eu-central-1" }), "providers.p.region", 'type "bedrock" only'],
  [provider({ ...anthropic, sign: () => ({}) }), "providers.p.sign", 'type "bedrock" only'],
  [provider({ ...bedrock, region: "evil.example/" }), "providers.p.region", "eu-central-1"],
  [provider({ ...bedrock, sign: {} }), "providers.p.sign", "a function"],
];

const modelRows: readonly Row[] = [
  [top({ models: {} }), "models", "leave it out"],
  [model({}, ""), 'models[""]', "must not be empty"],
  [model({}, "a*b"), "models.a*b", "last character"],
  [model({}, "a**"), "models.a**", "last character"],
  [model({}, " a"), 'models[" a"]', "white space"],
  [model({ targets: undefined }), "models.fast-chat.targets", "is required"],
  [model({ targets: [] }), "models.fast-chat.targets", "at least one"],
  [model({ target: "local/a" }), "models.fast-chat.target", 'Did you mean "targets"?'],
  [model({ routng: "weight" }), "models.fast-chat.routng", 'Did you mean "routing"?'],
  [model({ routing: "random" }), "models.fast-chat.routing", '"priority", "weight" or "latency"'],
  [model({ targets: ["local/a"] }), first, "must be an object"],
  [target({ target: "local" }), `${first}.target`, '"provider/model"'],
  [target({ target: "local/" }), `${first}.target`, '"provider/model"'],
  [target({ target: "/a" }), `${first}.target`, '"provider/model"'],
  [target({ target: "" }), `${first}.target`, '"provider/model"'],
  [target({ target: "locl/a" }), `${first}.target`, 'Providers are "anthropic" and "local". Did you mean "local"?'],
  [target({ target: "constructor/a" }), `${first}.target`, "there is no provider"],
  [target({ target: "local/*" }), `${first}.target`, "keeps the requested name"],
  [target({ target: "local/a*" }), `${first}.target`, '"local/*"'],
  [model({ targets: [{ target: "local/a" }, { target: "x/a" }] }), "models.fast-chat.targets[1].target", "no provider"],
  [model({ targets: [{ target: "x/a" }] }, "gpt-5.1"), 'models["gpt-5.1"].targets[0].target', "no provider"],
  [target({ weight: 100 }), `${first}.weight`, 'routing "weight" only'],
  [target({}, "weight"), `${first}.weight`, "is missing"],
  [target({ weight: 99 }, "weight"), "models.fast-chat.targets", "must sum to 100"],
  [target({ weight: 33.3 }, "weight"), `${first}.weight`, "whole number"],
  [target({ weight: -1 }, "weight"), `${first}.weight`, "from 0 to 100"],
  [target({ priority: -1 }), `${first}.priority`, "whole number"],
  [target({ priority: "1" }), `${first}.priority`, 'not "1"'],
  [target({ fallbackStatusCodes: [200] }), `${first}.fallbackStatusCodes[0]`, "400 to 599"],
  [target({ fallbackStatusCodes: ["429"] }), `${first}.fallbackStatusCodes[0]`, "a number"],
  [target({ fallbackStatusCodes: 429 }), `${first}.fallbackStatusCodes`, "array of status codes"],
  [target({ fallbackCandidate: 0 }), `${first}.fallbackCandidate`, "true or false"],
  [target({ overrideParams: { model: "b" } }), `${first}.overrideParams.model`, "`target`"],
  [target({ overrideParams: { stream: false } }), `${first}.overrideParams.stream`, "client's choice"],
  [target({ overrideParams: { a: { b: [() => 1] } } }), `${first}.overrideParams.a.b[0]`, "JSON value"],
  [target({ overrideParams: { a: Number.NaN } }), `${first}.overrideParams.a`, "JSON value"],
  [target({ overrideParams: { a: new Date() } }), `${first}.overrideParams.a`, "JSON value"],
  [target({ dropParams: ["stream"] }), `${first}.dropParams[0]`, "client's choice"],
  [target({ dropParams: "a" }), `${first}.dropParams`, "array of body keys"],
  [target({ headersOverride: { set: { host: "a" } } }), `${first}.headersOverride.set.host`, "connection"],
  [target({ headersOverride: { remove: ["a b"] } }), `${first}.headersOverride.remove[0]`, "header name"],
  [target({ headersOverride: { add: {} } }), `${first}.headersOverride.add`, '"set" and "remove"'],
  [target({ metadataMatch: { tier: 1 } }), `${first}.metadataMatch.tier`, "a string"],
  [target({ metadataMatch: { tier: "a".repeat(129) } }), `${first}.metadataMatch.tier`, "128"],
  [target({ slaCutoff: {} }), `${first}.slaCutoff`, "or both"],
  [target({ slaCutoff: { timePerOutputTokenMs: 0 } }), `${first}.slaCutoff.timePerOutputTokenMs`, "above 0"],
  [target({ slaCutoff: { timeToFirstTokenMs: 1 } }, "latency"), `${first}.slaCutoff`, 'routing "priority" only'],
  [target({ timeouts: { ttftTimeoutMs: 0 } }), `${first}.timeouts.ttftTimeoutMs`, "from 1 to 2147483647, not 0"],
  [target({ ttftTimeoutMs: 1, timeouts: { ttftTimeoutMs: 1 } }), `${first}.ttftTimeoutMs`, "set twice"],
  [target({ retry: { attempts: 11 } }), `${first}.retry.attempts`, "from 0 to 10"],
  [target({ retry: { delayMs: 9_000 } }), `${first}.retry.delayMs`, "must not be above maxDelayMs (8000)"],
  [
    model({ sticky: { ttlSeconds: 60, sessionIdentifiers: [{ source: "body", key: "user" }] } }),
    "models.fast-chat.sticky",
    'routing "weight" only',
  ],
  [model({ sticky: { ttlSeconds: 0, sessionIdentifiers: [] } }), "models.fast-chat.sticky.ttlSeconds", "seconds"],
  [model({ sticky: { ttlSeconds: 1, sessionIdentifiers: [] } }), "models.fast-chat.sticky.sessionIdentifiers", "empty"],
  [
    model({ sticky: { ttlSeconds: 1, sessionIdentifiers: [{ source: "cookie", key: "a" }] } }),
    "models.fast-chat.sticky.sessionIdentifiers[0].source",
    '"headers", "metadata" or "body"',
  ],
];

const topRows: readonly Row[] = [
  [top({ provider: {} }), "provider", 'Did you mean "providers"?'],
  [top({ aaaaaaaaaa: 1, bbbbbbbbbb: 2 }), "aaaaaaaaaa", 'Not known either: "bbbbbbbbbb"'],
  [top({ directModels: "local" }), "directModels", "true, false or an array"],
  [top({ directModels: [1] }), "directModels[0]", "a name"],
  [top({ directModels: ["local", "nobody/*"] }), "directModels[1]", "there is no provider"],
  [top({ directModels: ["local/*/a"] }), "directModels[0]", "last character"],
  [rule({ id: undefined }), "rules[0].id", "is required"],
  [rule({ when: undefined }), "rules[0].when", "is required"],
  [rule({ when: { model: ["a"] } }), "rules[0].when.model", 'Did you mean "models"?'],
  [rule({ when: { subjects: [] } }), "rules[0].when.subjects", "at least one"],
  [rule({ when: { models: ["a*b"] } }), "rules[0].when.models[0]", "last character"],
  [rule({ targets: [{ target: "x/a" }] }), "rules[0].targets[0].target", "no provider"],
  [rule({ when: { models: ["a"] }, targets: [{ target: "local/*" }] }), "rules[0].targets[0].target", "requested name"],
  [top({ gate: { maxHeldByte: 1 } }), "gate.maxHeldByte", 'Did you mean "maxHeldBytes"?'],
  [top({ gate: { maxHeldBytes: 65_535 } }), "gate.maxHeldBytes", "from 65536"],
  [top({ gate: { maxHeldEvents: 0 } }), "gate.maxHeldEvents", "from 1"],
  [top({ gate: { maxHoldMs: -1 } }), "gate.maxHoldMs", "from 0"],
  [top({ gate: { failureDetailTimeoutMs: Number.NaN } }), "gate.failureDetailTimeoutMs", "not NaN"],
  [top({ gate: { maxLifecycleEvents: 1.5 } }), "gate.maxLifecycleEvents", "whole number"],
  [top({ gate: { emptyCompletion: "retry" } }), "gate.emptyCompletion", '"fallback"'],
  [top({ gate: { onOverflow: "drop" } }), "gate.onOverflow", '"release" or "fail"'],
  [top({ gate: { inBandErrors: "false" } }), "gate.inBandErrors", "true or false"],
  [top({ timeouts: { requestTimeoutMs: 2 ** 31 } }), "timeouts.requestTimeoutMs", "2147483647"],
  [top({ timeouts: { idleTimeoutMs: "5s" } }), "timeouts.idleTimeoutMs", "of ms"],
  [top({ timeouts: { connectTimeoutMs: 0 } }), "timeouts.connectTimeoutMs", "from 1"],
  [top({ timeouts: { ttftTimeout: 1 } }), "timeouts.ttftTimeout", 'Did you mean "ttftTimeoutMs"?'],
  [top({ ttftTimeoutMs: 1 }), "ttftTimeoutMs", "not a known key"],
  [top({ retry: { attempts: -1 } }), "retry.attempts", "from 0 to 10"],
  [top({ retry: { onStatusCodes: ["3xx"] } }), "retry.onStatusCodes[0]", '"5xx"'],
  [top({ retry: { maxDelayMs: 50 } }), "retry.maxDelayMs", "delayMs (100)"],
  [top({ fallbackStatusCodes: [600] }), "fallbackStatusCodes[0]", "400 to 599"],
  [top({ cooldown: true }), "cooldown", "false or an object"],
  [top({ cooldown: { failures: 0 } }), "cooldown.failures", "from 1"],
  [top({ cooldown: { failureRatio: 1.1 } }), "cooldown.failureRatio", "at most 1"],
  [top({ cooldown: { durationMs: 10, maxDurationMs: 5 } }), "cooldown.maxDurationMs", "durationMs (10)"],
  [top({ onMidStreamFailure: "close" }), "onMidStreamFailure", '"event" or "abort"'],
  [top({ headerPrefix: "x-tfy" }), "headerPrefix", "end in a hyphen"],
  [top({ headerPrefix: "x tfy-" }), "headerPrefix", "hyphen"],
  [top({ exposeRouting: null }), "exposeRouting", "not null"],
  [top({ limits: { maxRequestBytes: 0 } }), "limits.maxRequestBytes", "of bytes"],
  [top({ limits: { maxQueue: 5 } }), "limits.maxQueue", "`maxConcurrent`"],
  [top({ timeouts: { lastTargetTtft: false as never } }), "timeouts.lastTargetTtft", '"enforce" or "exempt"'],
  [top({ timeouts: { minAttemptMs: -1 } }), "timeouts.minAttemptMs", "from 0"],
  [top({ timeouts: { totalTimeoutMs: 0 } }), "timeouts.totalTimeoutMs", "from 1"],
  [top({ store: "redis" }), "store", "health store"],
  [top({ store: new Map() }), "store", "rest, setRest, holder and setHolder"],
  [top({ observers: {} }), "observers", "array of observers"],
  [top({ observers: [{}] }), "observers[0]", "onEvent"],
  [top({ logger: { info: () => undefined } }), "logger", "pino"],
  [top({ dispatcher: "http://proxy" }), "dispatcher", "undici"],
];

describe.each([
  ["providers", providerRows],
  ["models", modelRows],
  ["everything else", topRows],
])("a problem in %s", (_, rows) => {
  test.each(rows.map(([config, path, remedy]) => ({ config, path, remedy })))(
    "$path: $remedy",
    ({ config, path, remedy }) => {
      const error = problemOf(config);

      expect(error.path).toBe(path);
      expect(error.message).toMatch(remedy);
      expect(error.message.startsWith(path)).toBe(true);
    },
  );

  test.each(rows.map(([config, path]) => ({ config, path })))("at $path shows no secret", ({ config }) => {
    expect(problemOf(config).message).not.toMatch(/secret|12345|u:pw|x-b: 2/);
  });
});

test("a rule id that is taken is named", () => {
  const one = { id: "a", when: {}, targets: [{ target: "local/a" }] };
  const error = problemOf(top({ rules: [one, one] }));

  expect(error.path).toBe("rules[1].id");
  expect(error.message).toContain('"a" is taken');
});

test("override values that hold themselves are a problem", () => {
  const loop: Loose = {};
  loop["self"] = [loop];

  expect(problemOf(target({ overrideParams: { loop } })).path).toBe(`${first}.overrideParams.loop.self[0]`);
});

test("the message lists every problem, the first at the front", () => {
  const error = problemOf({
    providers: { p: { type: "openai" }, q: { type: "ollama" } },
    models: { m: { targets: [{ target: "z/a" }] } },
  });

  expect(error.message.split("\n").map((line) => line.split(":")[0])).toEqual([
    "providers.p.apiKey",
    "providers.q.baseUrl",
    "models.m.targets[0].target",
  ]);
});

test("a long list of problems is cut", () => {
  const providers = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`p${index}`, { type: "ollama" }]));

  expect(problemOf({ providers }).message.split("\n")).toHaveLength(11);
  expect(problemOf({ providers }).message).toMatch(/and 20 more problems$/);
});

test("a value of the environment switch that is neither true nor false names the variable", () => {
  const error = problemOf(top({}), { RESPONSES_IN_BAND_ERROR_FALLBACK_ENABLED: "0" });

  expect(error.path).toBe("gate.responsesInBandErrors");
  expect(error.message).toContain("RESPONSES_IN_BAND_ERROR_FALLBACK_ENABLED must be true or false");
});
