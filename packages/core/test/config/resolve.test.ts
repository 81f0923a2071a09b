import { describe, expect, test } from "vitest";

import type { GatewayConfig } from "../../src/config.js";
import { resolveConfig } from "../../src/config/resolve.js";
import type { ResolvedConfig } from "../../src/config/resolved.js";
import { MemoryHealthStore } from "../../src/health/store.js";

const local = { type: "openai-compatible", baseUrl: "http://127.0.0.1:8000/v1" } as const;

function resolve(config: Partial<GatewayConfig>, env: Record<string, string> = {}): ResolvedConfig {
  return resolveConfig({ providers: { local }, ...config }, env);
}

const readmeExample: GatewayConfig = {
  providers: {
    anthropic: { type: "anthropic", apiKey: "sk-a" },
    openai: { type: "openai", apiKey: "sk-o" },
    local,
  },
  models: {
    "fast-chat": {
      routing: "priority",
      targets: [{ target: "openai/gpt-5.1" }, { target: "local/qwen3", dropParams: ["reasoning_effort"] }],
    },
    "claude-*": { routing: "priority", targets: [{ target: "anthropic/*" }] },
  },
};

test("the example of the README resolves", () => {
  const { models, directModels } = resolveConfig(readmeExample, {});

  expect(models.map((model) => [model.name, model.pattern])).toEqual([
    ["fast-chat", false],
    ["claude-*", true],
  ]);
  expect(models[0]?.targets.map((target) => target.id)).toEqual(["openai/gpt-5.1", "local/qwen3"]);
  expect(models[0]?.targets[1]?.dropParams).toEqual(["reasoning_effort"]);
  expect(models[1]?.targets[0]).toMatchObject({ model: "*", provider: { name: "anthropic" } });
  expect(directModels).toBe(false);
});

test("a configuration of one provider has every default", () => {
  const config = resolve({});

  expect(config).toMatchObject({
    models: [],
    rules: [],
    directModels: true,
    headerPrefix: "x-tfy-",
    exposeRouting: true,
    observers: [],
    cooldown: { failures: 2, failureRatio: 0.1, windowMs: 120_000, durationMs: 30_000, maxDurationMs: 300_000 },
    limits: { maxRequestBytes: 33_554_432, maxQueue: 0 },
    gate: {
      responsesInBandErrors: true,
      inBandErrors: true,
      emptyCompletion: "auto",
      maxLifecycleEvents: 4,
      maxHeldBytes: 4_194_304,
      maxHeldEvents: 256,
      maxHoldMs: 50_000,
      failureDetailTimeoutMs: 1_000,
      onOverflow: "release",
    },
  });
  expect(config.limits.maxConcurrent).toBeUndefined();
  expect(config.onMidStreamFailure).toBeUndefined();
});

test("targets inherit the built-in clocks, retries and status lists", () => {
  expect(resolve({}).defaults).toEqual({
    timeouts: {
      ttftTimeoutMs: undefined,
      requestTimeoutMs: 600_000,
      requestTimeoutIsSet: false,
      idleTimeoutMs: 300_000,
      idleTimeoutIsSet: false,
      connectTimeoutMs: 5_000,
      totalTimeoutMs: undefined,
      writeStallTimeoutMs: 60_000,
      lastTargetTtft: "enforce",
      minAttemptMs: 5_000,
    },
    retry: { attempts: undefined, delayMs: 100, maxDelayMs: 8_000, onStatusCodes: [429, 500, 502, 503, 504, 529] },
    fallbackStatusCodes: [401, 402, 403, 404, 408, 424, 429, "5xx"],
  });
});

test("the nearest level wins, key by key", () => {
  const config = resolve({
    timeouts: { ttftTimeoutMs: 1, idleTimeoutMs: 1, connectTimeoutMs: 1 },
    retry: { attempts: 1, delayMs: 1 },
    fallbackStatusCodes: [500],
    models: {
      m: {
        timeouts: { ttftTimeoutMs: 2, idleTimeoutMs: 2 },
        retry: { attempts: 2 },
        targets: [
          { target: "local/a", timeouts: { ttftTimeoutMs: 3 }, retry: { attempts: 0 }, fallbackStatusCodes: [] },
          { target: "local/b" },
        ],
      },
    },
  });
  const [a, b] = config.models[0]?.targets ?? [];

  expect(a?.timeouts).toMatchObject({ ttftTimeoutMs: 3, idleTimeoutMs: 2, connectTimeoutMs: 1 });
  expect(a?.retry).toMatchObject({ attempts: 0, delayMs: 1, maxDelayMs: 8_000 });
  expect(a?.fallbackStatusCodes).toEqual([]);
  expect(b?.timeouts).toMatchObject({ ttftTimeoutMs: 2 });
  expect(b?.retry).toMatchObject({ attempts: 2 });
  expect(b?.fallbackStatusCodes).toEqual([500]);
});

test("clocks may stand beside the other keys of a model or a target", () => {
  const config = resolve({
    models: { m: { totalTimeoutMs: 7, idleTimeoutMs: 8, targets: [{ target: "local/a", ttftTimeoutMs: 5 }] } },
  });

  expect(config.models[0]?.targets[0]?.timeouts).toMatchObject({
    ttftTimeoutMs: 5,
    totalTimeoutMs: 7,
    idleTimeoutMs: 8,
  });
});

test.each(["gateway", "model", "target"])("a request timeout set on the %s is known as set", (level) => {
  const timeouts = { requestTimeoutMs: 600_000, idleTimeoutMs: 9 };
  const config = resolve({
    ...(level === "gateway" && { timeouts }),
    models: {
      m: {
        ...(level === "model" && { timeouts }),
        targets: [{ target: "local/a", ...(level === "target" && timeouts) }],
      },
    },
  });

  expect(config.models[0]?.targets[0]?.timeouts).toMatchObject({ requestTimeoutIsSet: true, idleTimeoutIsSet: true });
});

test("undefined counts as absent", () => {
  const config = resolve({
    timeouts: { idleTimeoutMs: 7 },
    gate: { maxHeldBytes: undefined },
    cooldown: undefined,
    models: { m: { routing: undefined, targets: [{ target: "local/a", timeouts: { idleTimeoutMs: undefined } }] } },
  });

  expect(config.gate.maxHeldBytes).toBe(4_194_304);
  expect(config.models[0]).toMatchObject({ routing: "priority", targets: [{ timeouts: { idleTimeoutMs: 7 } }] });
});

test("exact names come before patterns, longer patterns before shorter ones", () => {
  const targets = [{ target: "local/a" }];
  const config = resolve({
    models: { "*": { targets }, "gpt-*": { targets }, gpt: { targets }, "gpt-5*": { targets } },
  });

  expect(config.models.map((model) => model.name)).toEqual(["gpt", "gpt-5*", "gpt-*", "*"]);
});

test("names of Object's own properties are plain names", () => {
  const config = resolveConfig(
    { providers: { constructor: local }, models: { toString: { targets: [{ target: "constructor/a/b" }] } } },
    {},
  );

  expect(config.models[0]?.targets[0]).toMatchObject({ id: "constructor/a/b", model: "a/b" });
});

test("weights, stickiness and cutoffs are kept", () => {
  const config = resolve({
    models: {
      w: {
        routing: "weight",
        sticky: { ttlSeconds: 60, sessionIdentifiers: [{ source: "headers", key: "X-Session" }] },
        targets: [
          { target: "local/a", weight: 100 },
          { target: "local/a", weight: 0 },
        ],
      },
      p: { targets: [{ target: "local/a", priority: 2, slaCutoff: { timePerOutputTokenMs: 12.5 } }] },
    },
  });

  expect(config.models[0]?.targets.map((target) => target.weight)).toEqual([100, 0]);
  expect(config.models[0]?.sticky?.sessionIdentifiers).toEqual([{ source: "headers", key: "x-session" }]);
  expect(config.models[1]?.targets[0]).toMatchObject({ priority: 2, slaCutoff: { timePerOutputTokenMs: 12.5 } });
});

test("a rule keeps its conditions and its targets inherit from the gateway", () => {
  const config = resolve({
    timeouts: { ttftTimeoutMs: 3 },
    rules: [
      {
        id: "gold",
        when: { subjects: ["a"], models: ["gpt-*"], metadata: { tier: "gold" } },
        targets: [{ target: "local/*", metadataMatch: { region: "eu" } }],
      },
    ],
  });
  const [rule] = config.rules;

  expect(rule?.when.subjects).toEqual(new Set(["a"]));
  expect(rule?.when.metadata).toEqual([["tier", "gold"]]);
  expect(rule?.targets[0]).toMatchObject({
    model: "*",
    metadataMatch: [["region", "eu"]],
    timeouts: { ttftTimeoutMs: 3 },
  });
});

test("a longer first rest lifts the default of the longest", () => {
  expect(resolve({ cooldown: { durationMs: 900_000 } }).cooldown).toMatchObject({ maxDurationMs: 900_000 });
  expect(resolve({ cooldown: false }).cooldown).toBe(false);
});

test("the header prefix is lower case", () => {
  expect(resolve({ headerPrefix: "X-Gate-" }).headerPrefix).toBe("x-gate-");
});

describe("the switch of the Responses validation", () => {
  const variable = "RESPONSES_IN_BAND_ERROR_FALLBACK_ENABLED";

  test.each([
    ["false", undefined, false],
    [" FALSE", undefined, false],
    ["True", undefined, true],
    ["", undefined, true],
    ["false", true, true],
    ["nonsense", false, false],
  ])("with the variable %j and the option %j it is %j", (value, responsesInBandErrors, expected) => {
    const config = resolve({ gate: { responsesInBandErrors } }, { [variable]: value });

    expect(config.gate.responsesInBandErrors).toBe(expected);
  });
});

describe("the result", () => {
  test("does not follow later changes of the given object", () => {
    const overrideParams = { stop: { words: ["a"] } };
    const headers: Record<string, string> = { "X-A": "1" };
    const codes: (number | "5xx")[] = [500];
    const config = resolve({
      providers: { local: { ...local, headers } },
      fallbackStatusCodes: codes,
      models: { m: { targets: [{ target: "local/a", overrideParams }] } },
    });
    overrideParams.stop.words.push("b");
    headers["X-A"] = "2";
    codes.push(501);

    expect(config.models[0]?.targets[0]?.overrideParams).toEqual({ stop: { words: ["a"] } });
    expect(config.providers.get("local")?.headers).toEqual([["x-a", "1"]]);
    expect(config.defaults.fallbackStatusCodes).toEqual([500]);
  });

  test("is frozen through and through", () => {
    const config = resolve({
      models: {
        m: {
          targets: [{ target: "local/a", overrideParams: { a: [{}] }, headersOverride: { set: { "x-a": "1" } } }],
          retry: { onStatusCodes: [500] },
        },
      },
      rules: [{ id: "a", when: { models: ["a"], metadata: { b: "c" } }, targets: [{ target: "local/a" }] }],
      directModels: ["local"],
      observers: [],
    });

    expect(unfrozen(config, "config")).toEqual([]);
  });

  test("keeps functions and services by reference", () => {
    const apiKey = (): string => "k";
    const sign = (): Record<string, string> => ({});
    const observer = { onEvent: (): void => undefined };
    const log = (): void => undefined;
    const logger = { debug: log, info: log, warn: log, error: log };
    const dispatcher = { dispatch: (): boolean => true };
    const store = new MemoryHealthStore();
    const config = resolveConfig(
      {
        providers: { a: { type: "anthropic", apiKey }, b: { type: "bedrock", region: "eu-central-1", sign } },
        observers: [observer],
        logger,
        dispatcher,
        store,
      },
      {},
    );

    expect(config.providers.get("a")?.apiKey).toBe(apiKey);
    expect(config.providers.get("b")?.sign).toBe(sign);
    expect(config.observers[0]).toBe(observer);
    expect(config.logger).toBe(logger);
    expect(config.dispatcher).toBe(dispatcher);
    expect(config.store).toBe(store);
  });
});

/** Paths of objects that are not frozen; maps and sets, which cannot be, are looked into. */
function unfrozen(value: unknown, path: string): string[] {
  if (typeof value !== "object" || value === null) return [];
  const isCollection = value instanceof Map || value instanceof Set;
  const inner = isCollection ? [...value.values()].entries() : Object.entries(value);
  const own = isCollection || Object.isFrozen(value) ? [] : [path];
  return [...own, ...[...inner].flatMap(([key, item]) => unfrozen(item, `${path}.${key}`))];
}
