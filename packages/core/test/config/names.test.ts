import { describe, expect, test } from "vitest";

import type { GatewayConfig } from "../../src/config.js";
import { directTarget } from "../../src/config/direct-target.js";
import { formatPath, nearest } from "../../src/config/problems.js";
import { resolveConfig } from "../../src/config/resolve.js";
import { targetFor } from "../../src/config/resolve-target.js";
import { matchStatus, type StatusCode } from "../../src/config/status-code.js";
import { matchesName, parseTargetRef } from "../../src/config/target-ref.js";

test.each<[StatusCode[], number, boolean]>([
  [[429], 429, true],
  [[429], 428, false],
  [["4xx"], 400, true],
  [["4xx"], 499, true],
  [["4xx"], 500, false],
  [["5xx"], 500, true],
  [["5xx"], 599, true],
  [["5xx"], 499, false],
  [[401, "5xx"], 529, true],
  [[], 500, false],
])("the list %j matches %j: %j", (codes, status, expected) => {
  expect(matchStatus(codes, status)).toBe(expected);
});

test("a target is split at the first slash", () => {
  expect(parseTargetRef("local/meta/llama-3")).toEqual({ provider: "local", model: "meta/llama-3" });
});

test.each(["", "/", "a", "a/", "/a"])("%j is no target", (text) => {
  expect(parseTargetRef(text)).toBeUndefined();
});

test("a pattern matches what begins like it, a name only itself", () => {
  expect(matchesName("gpt-*", "gpt-5.1")).toBe(true);
  expect(matchesName("gpt-*", "gpt")).toBe(false);
  expect(matchesName("gpt", "gpt-5.1")).toBe(false);
});

test("paths quote what would be read wrongly", () => {
  expect(formatPath(["models", "fast-chat", "targets", 1, "target"])).toBe("models.fast-chat.targets[1].target");
  expect(formatPath(["models", "gpt-5.1"])).toBe('models["gpt-5.1"]');
  expect(formatPath(["models", 'a"]'])).toBe(String.raw`models["a\"]"]`);
});

test("a near name is found across spellings, a far one is not", () => {
  expect(nearest("fallback_status_codes", ["fallbackStatusCodes", "fallbackCandidate"])).toBe("fallbackStatusCodes");
  expect(nearest("wieght", ["weight", "target"])).toBe("weight");
  expect(nearest("temperature", ["weight", "target"])).toBeUndefined();
});

describe("models that clients name as provider/model", () => {
  const local = { type: "openai-compatible", baseUrl: "http://127.0.0.1:8000/v1" } as const;
  const models = { m: { targets: [{ target: "a/x" }] } };

  const idOf = (config: Partial<GatewayConfig>, provider: string, model: string): string | undefined =>
    directTarget(resolveConfig({ providers: { a: local, b: local }, ...config }, {}), provider, model)?.id;

  test("are allowed without virtual models", () => {
    expect(idOf({}, "a", "x/y")).toBe("a/x/y");
    expect(idOf({}, "c", "x")).toBeUndefined();
    expect(idOf({}, "a", "")).toBeUndefined();
    expect(idOf({}, "a", "*")).toBeUndefined();
  });

  test("are not allowed beside virtual models, unless set", () => {
    expect(idOf({ models }, "a", "x")).toBeUndefined();
    expect(idOf({ models, directModels: true }, "a", "x")).toBe("a/x");
    expect(idOf({ directModels: false }, "a", "x")).toBeUndefined();
  });

  test.each<[string, string, boolean]>([
    ["a", "x", true],
    ["a/*", "x/y", true],
    ["a/x", "x", true],
    ["a/x", "x2", false],
    ["a/gpt-*", "gpt-5", true],
    ["a/gpt-*", "x", false],
    ["b", "x", false],
  ])("with the list entry %j the model a/%s is allowed: %j", (entry, model, allowed) => {
    expect(idOf({ directModels: [entry] }, "a", model)).toBe(allowed ? `a/${model}` : undefined);
  });

  test("have the settings of the gateway", () => {
    const config = resolveConfig(
      { providers: { a: local }, timeouts: { ttftTimeoutMs: 5 }, retry: { attempts: 1 } },
      {},
    );
    const provider = config.providers.get("a");
    if (provider === undefined) throw new Error("the provider is missing");

    expect(targetFor(config, provider, "x")).toMatchObject({
      id: "a/x",
      priority: 0,
      fallbackCandidate: true,
      timeouts: { ttftTimeoutMs: 5 },
      retry: { attempts: 1 },
    });
  });
});
