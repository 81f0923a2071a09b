import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { RequestHeaderFacts } from "../../src/upstream/request-headers.js";
import { requestHeaders, withSignedHeaders } from "../../src/upstream/request-headers.js";
import { okAnswer, rawServer } from "./raw-server.js";
import { exchange, post, testClient } from "./recorder.js";

type Provider = RequestHeaderFacts["provider"];

const provider = (overrides: Partial<Provider> = {}): Provider => ({
  type: "openai",
  forwardClientCredentials: false,
  headers: [],
  forwardHeaders: new Set(),
  ...overrides,
});

function build(overrides: Partial<RequestHeaderFacts> = {}) {
  const result = requestHeaders({
    client: {},
    provider: provider(),
    protocol: "openai-chat",
    hasBody: true,
    apiKey: "sk-own",
    ...overrides,
  });
  if ("invalidHeader" in result) throw new Error(result.message);
  return { ...result, record: toRecord(result.headers) };
}

function toRecord(flat: readonly string[]): Record<string, string> {
  const pairs = Array.from({ length: flat.length / 2 }, (_, i): [string, string] => [flat[2 * i], flat[2 * i + 1]]);
  expect(new Set(pairs.map(([name]) => name)).size).toBe(pairs.length);
  return Object.fromEntries(pairs);
}

/** What a client must not be able to send to a provider. */
const canaries: Record<string, string> = Object.fromEntries(
  [
    "authorization",
    "cookie",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "x-custom-auth",
    "proxy-authorization",
    "openai-organization",
    "openai-project",
    "x-forwarded-for",
    "x-forwarded-host",
    "forwarded",
    "via",
    "x-real-ip",
    "host",
    "te",
    "expect",
    "upgrade",
    "transfer-encoding",
    "content-length",
    "content-encoding",
    "accept-encoding",
    "keep-alive",
    "x_api_key",
    "referer",
    "origin",
    "user-agent",
    "x-tfy-metadata",
    "x-amzn-bedrock-trace",
    "if-none-match",
  ].map((name) => [name, `Bearer canary-${name}`]),
);

describe("the client's headers", () => {
  it("reach the provider where they are on the list", () => {
    const client = {
      accept: "text/event-stream",
      "anthropic-version": "2024-01-01",
      "anthropic-beta": "a,b",
      "openai-beta": "x",
      "idempotency-key": "i",
      "x-client-request-id": "c",
      traceparent: "00-1-2-01",
      tracestate: "k=v",
    };
    expect(build({ client }).record).toMatchObject(client);
  });

  it("do not reach it otherwise", () => {
    expect(build({ client: canaries }).record).toEqual({
      "accept-encoding": "identity",
      "content-type": "application/json",
      authorization: "Bearer sk-own",
    });
  });

  it("do not reach it otherwise on the wire either", async () => {
    const server = await rawServer(({ socket }) => socket.write(okAnswer));
    await exchange(testClient(), post(server.origin, { headers: build({ client: canaries }).headers }));
    const { received } = await server.connection(0);
    expect(received).toContain("authorization: Bearer sk-own\r\n");
    expect(received).not.toContain("canary");
  });

  it("do not reach it although forwardHeaders lists them, where they hold credentials or belong to the connection", () => {
    const forbidden = ["authorization", "cookie", "x-api-key", "api-key", "x-goog-api-key", "host", "te", "expect"];
    const { record } = build({ client: canaries, provider: provider({ forwardHeaders: new Set(forbidden) }) });
    expect(JSON.stringify(record)).not.toContain("canary");
  });

  it("reach it where forwardHeaders lists them", () => {
    const { record } = build({ client: canaries, provider: provider({ forwardHeaders: new Set(["x-custom-auth"]) }) });
    expect(record["x-custom-auth"]).toBe("Bearer canary-x-custom-auth");
  });

  it("are dropped where a Connection line names them, without touching ours", () => {
    const { record } = build({
      client: {
        connection: ["keep-alive, OpenAI-Beta", "x-hop,authorization , content-type"],
        "openai-beta": "x",
        "x-hop": "1",
        "content-type": "application/json; charset=utf-8",
      },
      provider: provider({ forwardHeaders: new Set(["x-hop"]) }),
    });
    expect(record).toEqual({
      "accept-encoding": "identity",
      "content-type": "application/json",
      authorization: "Bearer sk-own",
    });
  });

  it("of Bedrock reach Bedrock only", () => {
    const client = { "x-amzn-bedrock-trace": "ENABLED" };
    expect(build({ client, provider: provider({ type: "bedrock" }) }).record).toMatchObject(client);
    expect(build({ client }).record).not.toHaveProperty("x-amzn-bedrock-trace");
  });

  it("cannot reach it through the prototype", () => {
    const client = JSON.parse('{"__proto__":{"openai-beta":"x"}}') as Record<string, string>;
    expect(build({ client: Object.assign(Object.create({ "openai-beta": "x" }), client) }).record).not.toHaveProperty(
      "openai-beta",
    );
  });

  it("are joined where they repeat", () => {
    expect(build({ client: { "anthropic-beta": ["a", "b"] } }).record["anthropic-beta"]).toBe("a, b");
  });

  it.each([
    ["application/json; charset=utf-8", "application/json; charset=utf-8"],
    ["application/vnd.api+json", "application/vnd.api+json"],
    ["Application/JSON", "Application/JSON"],
    ["text/plain", "application/json"],
    ["application/jsonp", "application/json"],
    ["multipart/form-data; boundary=x", "application/json"],
    [undefined, "application/json"],
  ])("content type %s becomes %s", (given, sent) => {
    expect(build({ client: { "content-type": given } }).record["content-type"]).toBe(sent);
  });

  it("hold no content type without a body", () => {
    const { record } = build({ client: { "content-type": "application/json" }, hasBody: false });
    expect(record).not.toHaveProperty("content-type");
  });
});

describe("the gateway's headers", () => {
  it("hold the Anthropic version where the client names none", () => {
    expect(build({ protocol: "anthropic-messages" }).record["anthropic-version"]).toBe("2023-06-01");
    expect(build().record).not.toHaveProperty("anthropic-version");
  });

  it("replace the client's trace context as a whole", () => {
    const { record } = build({
      client: { traceparent: "theirs", tracestate: "theirs" },
      trace: { traceparent: "ours" },
    });
    expect(record["traceparent"]).toBe("ours");
    expect(record).not.toHaveProperty("tracestate");
  });

  it("give way to the provider's, and those to the target's", () => {
    const { record } = build({
      client: { accept: "client", "openai-beta": "client", "idempotency-key": "client" },
      provider: provider({
        headers: [
          ["accept", "provider"],
          ["openai-beta", "provider"],
        ],
      }),
      headersOverride: { set: [["accept", "target"]], remove: new Set(["idempotency-key"]) },
    });
    expect(record).toMatchObject({ accept: "target", "openai-beta": "provider" });
    expect(record).not.toHaveProperty("idempotency-key");
  });

  it("keep the credential although the target removes its header", () => {
    const headersOverride = { set: [], remove: new Set(["authorization"]) };
    expect(build({ headersOverride }).record["authorization"]).toBe("Bearer sk-own");
  });

  it.each([
    ["openai", "authorization", "Bearer k"],
    ["openai-compatible", "authorization", "Bearer k"],
    ["ollama", "authorization", "Bearer k"],
    ["bedrock", "authorization", "Bearer k"],
    ["anthropic", "x-api-key", "k"],
    ["anthropic-compatible", "x-api-key", "k"],
    ["azure", "api-key", "k"],
    ["google", "x-goog-api-key", "k"],
  ] as const)("hold the key of a provider of type %s in %s", (type, name, value) => {
    const { record, credential } = build({ provider: provider({ type }), apiKey: "k" });
    expect(record[name]).toBe(value);
    expect(credential).toBe("own");
  });

  it("hold no credential where none is configured, whatever the client sends", () => {
    const { record, credential } = build({ client: canaries, apiKey: undefined });
    expect(JSON.stringify(record)).not.toContain("canary");
    expect(credential).toBe("none");
  });
});

describe("forwardClientCredentials", () => {
  const oauth = "sk-ant-oat01-abc";
  const jwt = "eyJhbGciOi.eyJzdWIi.c2ln";

  it.each([
    ["openai", { authorization: "Bearer c" }, { authorization: "Bearer c" }],
    ["openai", { authorization: "bearer c" }, { authorization: "Bearer c" }],
    ["openai", { "x-api-key": "c" }, { authorization: "Bearer c" }],
    ["anthropic", { "x-api-key": "c" }, { "x-api-key": "c" }],
    ["anthropic", { authorization: "Bearer c" }, { "x-api-key": "c" }],
    ["anthropic", { authorization: `Bearer ${oauth}` }, { authorization: `Bearer ${oauth}` }],
    ["anthropic", { authorization: "Bearer other", "x-api-key": "c" }, { "x-api-key": "c" }],
    ["azure", { "api-key": "c" }, { "api-key": "c" }],
    ["azure", { authorization: "Bearer c" }, { "api-key": "c" }],
    ["azure", { authorization: `Bearer ${jwt}` }, { authorization: `Bearer ${jwt}` }],
    ["google", { "x-goog-api-key": "c" }, { "x-goog-api-key": "c" }],
    ["google", { authorization: "Bearer ya29.token" }, { authorization: "Bearer ya29.token" }],
    ["ollama", { authorization: "Bearer c" }, { authorization: "Bearer c" }],
  ] as const)("%s: %j is sent as %j alone", (type, client, sent) => {
    const { record, credential } = build({
      client,
      provider: provider({ type, forwardClientCredentials: true }),
      apiKey: undefined,
    });
    const { "accept-encoding": _, "content-type": __, ...rest } = record;
    expect(rest).toEqual(sent);
    expect(credential).toBe("client");
  });

  it("reads the key that Gemini clients put into the query", () => {
    const { record } = build({
      provider: provider({ type: "google", forwardClientCredentials: true }),
      apiKey: undefined,
      clientQueryKey: "c",
    });
    expect(record["x-goog-api-key"]).toBe("c");
  });

  it("falls back to the provider's own key where the client sends none", () => {
    const client = { authorization: "Basic dXNlcjpwYXNz" };
    const { record, credential } = build({ client, provider: provider({ forwardClientCredentials: true }) });
    expect(record["authorization"]).toBe("Bearer sk-own");
    expect(credential).toBe("own");
  });
});

describe("a value that cannot be sent", () => {
  const facts: RequestHeaderFacts = { client: {}, provider: provider(), protocol: "openai-chat", hasBody: true };

  it.each([
    ["client", "openai-beta", { client: { "openai-beta": "secret\r\nx: y" } }],
    ["client", "accept", { client: { accept: "secret\u0100" } }],
    ["config", "x-a", { provider: provider({ headers: [["x-a", "secret\n"]] }) }],
    ["credential", "authorization", { apiKey: "secret\n" }],
  ])("of the %s is refused by the name of its header, %s, alone", (source, invalidHeader, overrides) => {
    const result = requestHeaders({ ...facts, ...overrides });
    expect(result).toMatchObject({ source, invalidHeader });
    expect(JSON.stringify(result)).not.toContain("secret");
  });

  it("never gets past the check to where undici would throw", () => {
    const names = fc.constantFrom("accept", "openai-beta", "content-type", "x-fwd", "connection", "__proto__");
    fc.assert(
      fc.property(fc.dictionary(names, fc.string({ unit: "binary" })), fc.string(), (client, apiKey) => {
        const forwarding = provider({ forwardHeaders: new Set(["x-fwd"]) });
        const result = requestHeaders({ ...facts, client, apiKey, provider: forwarding });
        if ("invalidHeader" in result) return;
        for (const text of result.headers) expect(text).toMatch(/^[\t\x20-\x7e\x80-\xff]*$/);
      }),
    );
  });
});

describe("signed headers", () => {
  const base = { headers: ["accept", "a", "authorization", "old"], credential: "none" as const };

  it("replace those of the same name, in lower case", () => {
    const result = withSignedHeaders(base, { Authorization: "AWS4 sig", "X-Amz-Date": "d" });
    expect(result).toEqual({
      headers: ["accept", "a", "authorization", "AWS4 sig", "x-amz-date", "d"],
      credential: "own",
    });
  });

  it("leave out what the HTTP client sets", () => {
    expect(withSignedHeaders(base, { Host: "h", "Content-Length": "2" })).toMatchObject({ headers: base.headers });
  });

  it("are refused by name where they cannot be sent", () => {
    expect(withSignedHeaders(base, { "x-a": "b\n" })).toMatchObject({ invalidHeader: "x-a", source: "credential" });
    expect(withSignedHeaders(base, { "x a": "b" })).toMatchObject({ invalidHeader: "x a" });
  });
});
