import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { PathFacts, PathProvider } from "../../src/upstream/path.js";
import { upstreamPath } from "../../src/upstream/path.js";
import { okAnswer, rawServer } from "./raw-server.js";
import { exchange, post, testClient } from "./recorder.js";

const openai: PathProvider = { type: "openai", basePath: "/v1" };
const anthropic: PathProvider = { type: "anthropic", basePath: "" };
const google: PathProvider = { type: "google", basePath: "" };
const bedrock: PathProvider = { type: "bedrock", basePath: "" };
const ollama: PathProvider = { type: "ollama", basePath: "" };
const azure: PathProvider = { type: "azure", basePath: "" };
const dated: PathProvider = { type: "azure", basePath: "", apiVersion: "2024-10-21" };
const gemini = "/v1beta/models/{model}:streamGenerateContent";

function pathOf(provider: PathProvider, facts: PathFacts): string {
  const path = upstreamPath(provider, facts);
  if (typeof path !== "string") throw new Error(path.invalidPath);
  return path;
}

describe("the path at the provider", () => {
  it.each<[PathProvider, PathFacts, string]>([
    [openai, { route: "/v1/chat/completions" }, "/v1/chat/completions"],
    [openai, { route: "/v1/responses" }, "/v1/responses"],
    [openai, { route: "/v1/responses/input_tokens" }, "/v1/responses/input_tokens"],
    [openai, { route: "/v1/responses/compact" }, "/v1/responses/compact"],
    [openai, { route: "/v1/embeddings" }, "/v1/embeddings"],
    [openai, { route: "/v1/responses/{id}", id: "resp_1" }, "/v1/responses/resp_1"],
    [openai, { route: "/v1/responses/{id}/cancel", id: "resp_1" }, "/v1/responses/resp_1/cancel"],
    [{ type: "openai-compatible", basePath: "" }, { route: "/v1/chat/completions" }, "/chat/completions"],
    [{ type: "openai-compatible", basePath: "/api/v3" }, { route: "/v1/chat/completions" }, "/api/v3/chat/completions"],
    [{ type: "openai-compatible", basePath: "/v1" }, { route: "/v1/messages" }, "/v1/messages"],
    [{ type: "openai-compatible", basePath: "" }, { route: "/v1/messages" }, "/v1/messages"],
    [anthropic, { route: "/v1/messages" }, "/v1/messages"],
    [anthropic, { route: "/v1/messages/count_tokens" }, "/v1/messages/count_tokens"],
    [{ type: "anthropic-compatible", basePath: "/anthropic" }, { route: "/v1/messages" }, "/anthropic/v1/messages"],
    [google, { route: gemini, model: "gemini-3-pro" }, "/v1beta/models/gemini-3-pro:streamGenerateContent"],
    [google, { route: "/v1beta/interactions" }, "/v1beta/interactions"],
    [bedrock, { route: "/model/{model}/converse-stream", model: "a.b:0" }, "/model/a.b%3A0/converse-stream"],
    [ollama, { route: "/api/chat" }, "/api/chat"],
    [ollama, { route: "/v1/chat/completions" }, "/v1/chat/completions"],
    [azure, { route: "/v1/chat/completions", model: "d" }, "/openai/v1/chat/completions"],
    [azure, { route: "/v1/responses/{id}", id: "r" }, "/openai/v1/responses/r"],
    [
      dated,
      { route: "/v1/chat/completions", model: "d" },
      "/openai/deployments/d/chat/completions?api-version=2024-10-21",
    ],
    [dated, { route: "/v1/embeddings", model: "d" }, "/openai/deployments/d/embeddings?api-version=2024-10-21"],
    [dated, { route: "/v1/responses", model: "d" }, "/openai/responses?api-version=2024-10-21"],
    [{ ...dated, basePath: "/proxy" }, { route: "/v1/responses" }, "/proxy/openai/responses?api-version=2024-10-21"],
  ])("of %j for %j is %s", (provider, facts, path) => {
    expect(upstreamPath(provider, facts)).toBe(path);
  });
});

describe("the query at the provider", () => {
  it.each<[string, PathProvider, PathFacts, string]>([
    ["keeps alt", google, { route: gemini, model: "m", query: "?alt=sse" }, "alt=sse"],
    ["never holds key", google, { route: gemini, model: "m", query: "key=secret&alt=sse&KEY=x" }, "alt=sse"],
    ["keeps beta", anthropic, { route: "/v1/messages", query: "beta=true" }, "beta=true"],
    ["drops all else", anthropic, { route: "/v1/messages", query: "a=1&stream=true&api-version=x&__proto__=y" }, ""],
    [
      "keeps what stored responses take",
      openai,
      {
        route: "/v1/responses/{id}",
        id: "r",
        query: "stream=true&starting_after=3&include%5B%5D=a&include%5B%5D=b&include_obfuscation=false&x=1",
      },
      "stream=true&starting_after=3&include%5B%5D=a&include%5B%5D=b&include_obfuscation=false",
    ],
    [
      "holds the target's api-version, not the client's",
      dated,
      { route: "/v1/responses", query: "api-version=1" },
      "api-version=2024-10-21",
    ],
    ["is encoded anew", anthropic, { route: "/v1/messages", query: "beta=a%0d%0ax b#c" }, "beta=a%0D%0Ax+b%23c"],
  ])("%s", (_, provider, facts, query) => {
    expect(pathOf(provider, facts).split("?")[1] ?? "").toBe(query);
  });
});

/** Each of these would leave the base path, or the host, if it were concatenated or resolved. */
const hostile = [
  "//evil.example/x",
  "/\\evil.example",
  "\\\\evil.example",
  "@evil.example/x",
  ":80@evil.example",
  "https://evil.example/",
  "../../admin",
  "..%2f..%2fadmin",
  "%2e%2e/admin",
  "..;/admin",
  "a/../../admin",
  "a\\..\\..\\admin",
  "./x",
  "a?key=x",
  "a#frag",
  "a%00b",
  "a\r\nhost: evil.example\r\n\r\n",
  "a b",
  "ä",
  "\u2028",
  "$&",
  "$'",
  "{id}",
  "a:generateContent?x=",
  "//",
  "/",
  "%",
  "%zz",
];

describe("a hostile model", () => {
  it.each(hostile)("%j stays one segment of the provider's path", async (model) => {
    const evil = await rawServer(() => undefined);
    const server = await rawServer(({ socket }) => socket.write(okAnswer));
    const path = pathOf(
      { ...google, basePath: "/base" },
      { route: gemini, model: model.replaceAll("evil.example", evil.origin.slice(7)) },
    );
    expect(path).toMatch(/^\/base\/v1beta\/models\/[^/\\?#]+:streamGenerateContent$/);
    await exchange(testClient(), post(server.origin, { path }));
    expect(server.connections[0]?.received).toMatch(/^POST \/base\/v1beta\/models\/\S+ HTTP\/1\.1\r\nhost: 127/);
    expect(evil.connections).toHaveLength(0);
  });

  it.each([".", "..", "...", "", "\ud800", undefined])("%j is refused", (model) => {
    expect(upstreamPath(bedrock, { route: "/model/{model}/invoke", model })).toHaveProperty("invalidPath");
  });

  it.each([...hostile, "..", ".", "", "x".repeat(513), undefined])("as a response id %j is refused", (id) => {
    expect(upstreamPath(openai, { route: "/v1/responses/{id}", id })).toHaveProperty("invalidPath");
  });

  it("whatever it is, decodes back to itself or is refused", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (model) => {
        const path = upstreamPath(bedrock, { route: "/model/{model}/invoke", model });
        if (typeof path !== "string") return;
        const segments = path.split("/");
        expect(segments).toHaveLength(4);
        expect(decodeURIComponent(segments[2] ?? "")).toBe(model);
        expect(new URL(path, "http://host.example").pathname).toBe(path);
      }),
    );
  });
});

it.each(["//evil.example", "/a/../b", "/a b", "/a\\b", "/%2e%2e", "evil.example"])(
  "a base path %j gives no path",
  (basePath) => {
    expect(upstreamPath({ type: "anthropic", basePath }, { route: "/v1/messages" })).toHaveProperty("invalidPath");
  },
);
