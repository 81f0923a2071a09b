import { describe, expect, test } from "vitest";

import type { ProviderConfig } from "../../src/config.js";
import { resolveConfig } from "../../src/config/resolve.js";
import type { ResolvedProvider } from "../../src/config/resolved.js";

function resolve(provider: ProviderConfig): ResolvedProvider {
  const resolved = resolveConfig({ providers: { p: provider } }, {}).providers.get("p");
  if (resolved === undefined) throw new Error("the provider is missing");
  return resolved;
}

const baseUrl = "http://host:8000";
const apiKey = "k";

test.each<[ProviderConfig, string, string]>([
  [{ type: "openai", apiKey }, "https://api.openai.com", "/v1"],
  [{ type: "anthropic", apiKey }, "https://api.anthropic.com", ""],
  [{ type: "google", apiKey }, "https://generativelanguage.googleapis.com", ""],
  [{ type: "bedrock", apiKey, region: "eu-west-1" }, "https://bedrock-runtime.eu-west-1.amazonaws.com", ""],
  [{ type: "bedrock", apiKey, region: "eu-west-1", baseUrl }, "http://host:8000", ""],
  [{ type: "openai-compatible", baseUrl: "http://host:80/v1///" }, "http://host", "/v1"],
  [{ type: "openai-compatible", baseUrl: "http://host" }, "http://host", ""],
  [{ type: "openai-compatible", baseUrl: "HTTPS://Host/Api/v2" }, "https://host", "/Api/v2"],
  [{ type: "anthropic-compatible", baseUrl: "http://host/anthropic/" }, "http://host", "/anthropic"],
  [{ type: "anthropic-compatible", baseUrl: "http://host/v1x" }, "http://host", "/v1x"],
  [{ type: "azure", apiKey, baseUrl: "https://r.openai.azure.com/" }, "https://r.openai.azure.com", ""],
  [{ type: "ollama", baseUrl: "http://[::1]:11434" }, "http://[::1]:11434", ""],
])("the base URL of %j is %s%s", (config, origin, basePath) => {
  expect(resolve(config)).toMatchObject({ origin, basePath });
});

test.each<[ProviderConfig, string[]]>([
  [{ type: "openai", apiKey }, ["openai-chat", "openai-responses"]],
  [{ type: "azure", apiKey, baseUrl }, ["openai-chat", "openai-responses"]],
  [{ type: "openai-compatible", baseUrl }, ["openai-chat"]],
  [{ type: "anthropic", apiKey }, ["anthropic-messages"]],
  [{ type: "anthropic-compatible", baseUrl }, ["anthropic-messages"]],
  [{ type: "google", apiKey }, ["gemini", "gemini-interactions"]],
  [{ type: "bedrock", apiKey, baseUrl }, ["bedrock-invoke", "bedrock-converse"]],
  [{ type: "ollama", baseUrl }, ["ollama"]],
  [{ type: "openai-compatible", baseUrl, protocols: ["openai-responses"] }, ["openai-responses"]],
])("%j serves %j", (config, protocols) => {
  expect([...resolve(config).protocols]).toEqual(protocols);
});

test.each<[ProviderConfig, boolean]>([
  [{ type: "openai", apiKey }, true],
  [{ type: "ollama", baseUrl }, true],
  [{ type: "openai-compatible", baseUrl }, false],
  [{ type: "anthropic-compatible", baseUrl }, false],
  [{ type: "openai-compatible", baseUrl, requireTerminal: true }, true],
  [{ type: "openai", apiKey, requireTerminal: false }, false],
])("of %j the end marker is required: %j", (config, required) => {
  expect(resolve(config).requireTerminal).toBe(required);
});

describe("a key is not needed", () => {
  test.each<ProviderConfig>([
    { type: "openai", forwardClientCredentials: true },
    { type: "bedrock", region: "eu-west-1", sign: () => ({}) },
    { type: "openai-compatible", baseUrl },
    { type: "anthropic-compatible", baseUrl },
    { type: "ollama", baseUrl },
  ])("for %j", (config) => {
    expect(resolve(config).apiKey).toBeUndefined();
  });
});

test("header names are lower case, values are kept", () => {
  const provider = resolve({
    type: "openai-compatible",
    baseUrl,
    headers: { "X-Team": "Größe\tA" },
    forwardHeaders: ["X-Trace"],
  });

  expect(provider.headers).toEqual([["x-team", "Größe\tA"]]);
  expect(provider.forwardHeaders).toEqual(new Set(["x-trace"]));
});

test("an inherited undefined key is an error too", () => {
  class Settings {
    readonly type = "openai-compatible";
    readonly baseUrl = baseUrl;
    get apiKey(): string {
      return "";
    }
  }

  expect(() => resolve(new Settings())).toThrow(/environment variable/);
});
