/** The APIs beside the big three, through the whole gateway: paths, models, credentials, error bodies. */

import { gzipSync } from "node:zlib";
import { chunk, end, head, json, reset, startScriptedProvider, until } from "@first-chunk/core/testing";
import type { Script, ScriptedProvider } from "@first-chunk/core/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { FailedEvent, ReleasedEvent } from "../src/events.js";
import { createGateway, type Gateway } from "../src/gateway.js";
import type { GatewayConfig, ProviderConfig, SignableRequest } from "../src/config.js";
import { awsEvent, awsException } from "./fixtures/aws-messages.js";
import { converseWires } from "./fixtures/healthy-bedrock.js";
import { geminiWires, interactionsWires } from "./fixtures/healthy-google.js";
import { ollamaWires } from "./fixtures/healthy-ollama.js";

let provider: ScriptedProvider;
let gateway: Gateway | undefined;

beforeEach(async () => {
  provider = await startScriptedProvider([]);
});

afterEach(async () => {
  await gateway?.close();
  await provider.close();
});

interface Answer {
  readonly status: number;
  readonly headers: ReleasedEvent["headers"];
  readonly body: Buffer;
}

interface Ask {
  readonly headers?: Record<string, string>;
  readonly config?: Partial<GatewayConfig>;
  readonly mounted?: boolean;
  readonly onPart?: (part: Uint8Array) => void;
}

async function ask(
  only: ProviderConfig,
  url: string,
  body: object,
  { headers = {}, config = {}, mounted = false, onPart }: Ask = {},
): Promise<Answer> {
  await gateway?.close();
  gateway = createGateway({
    providers: { p: { baseUrl: provider.url, ...only } },
    models: { fast: { routing: "priority", targets: [{ target: "p/slow:1" }] } },
    directModels: true,
    retry: { attempts: 0 },
    cooldown: false,
    ...config,
  });
  let last: ReleasedEvent | FailedEvent | undefined;
  const request = {
    method: "POST",
    url,
    mounted,
    headers,
    body: Buffer.from(JSON.stringify(body)),
    signal: new AbortController().signal,
  };
  for await (const event of gateway.handle(request)) {
    if (event.type === "released" || event.type === "failed") last = event;
  }
  if (last === undefined) throw new Error("no answer");
  if (last.type === "failed") return { ...last, body: Buffer.from(last.body) };
  const parts: Uint8Array[] = [];
  for await (const part of last.body) {
    parts.push(part);
    onPart?.(part);
  }
  return { status: last.status, headers: last.headers, body: Buffer.concat(parts) };
}

function stream(contentType: string, ...chunks: readonly (string | Uint8Array)[]): Script {
  return [head(200, { "content-type": contentType }), ...chunks.map((bytes) => chunk(bytes)), end()];
}

const aws = "application/vnd.amazon.eventstream";
const google: ProviderConfig = { type: "google", apiKey: "g-key" };
const bedrock: ProviderConfig = { type: "bedrock", apiKey: "b-key" };
const text = geminiWires["text"];
const sent = (): { path: string; body: string; headers: Record<string, unknown> } => {
  const [{ path, body, headers }] = provider.requests.slice(-1) as [(typeof provider.requests)[number]];
  return { path, body: body.toString(), headers };
};

describe("Gemini", () => {
  const contents = [{ role: "user", parts: [{ text: "Hi" }] }];

  it("replaces a virtual model in the path, and leaves the body alone", async () => {
    provider.use(stream("text/event-stream", text));
    const answer = await ask(google, "/v1beta/models/fast:streamGenerateContent?alt=sse&key=secret", { contents });
    expect(answer.body.toString()).toBe(text);
    expect(sent().path).toBe("/v1beta/models/slow%3A1:streamGenerateContent?alt=sse");
    expect(sent().body).toBe(JSON.stringify({ contents }));
    expect(sent().headers["x-goog-api-key"]).toBe("g-key");
  });

  it("takes provider/model as one encoded segment", async () => {
    provider.use(json(200, { candidates: [] }));
    expect((await ask(google, "/v1beta/models/p%2Fgemini-3:generateContent", { contents })).status).toBe(200);
    expect(sent().path).toBe("/v1beta/models/gemini-3:generateContent");
  });

  it("passes the key of the query on where the client's credentials are used", async () => {
    provider.use(stream("text/event-stream", text));
    await ask(
      { type: "google", forwardClientCredentials: true },
      "/v1beta/models/fast:streamGenerateContent?alt=sse&key=theirs",
      { contents },
    );
    expect([sent().path.includes("key="), sent().headers["x-goog-api-key"]]).toEqual([false, "theirs"]);
  });

  it("keeps the content type of a JSON array, and keeps proxies from collecting it", async () => {
    const array = geminiWires["a JSON array"];
    provider.use(stream("application/json; charset=UTF-8", array.slice(0, 50), array.slice(50)));
    const answer = await ask(google, "/v1beta/models/fast:streamGenerateContent", { contents });
    expect([answer.headers["content-type"], answer.body.toString()]).toEqual([
      "application/json; charset=UTF-8",
      array,
    ]);
  });

  it("breaks a JSON array that is cut short, without an event", async () => {
    const array = geminiWires["a JSON array"];
    provider.use(stream("application/json", array.slice(0, 300)));
    await expect(ask(google, "/v1beta/models/fast:streamGenerateContent", { contents })).rejects.toMatchObject({
      code: "upstream_truncated_stream",
    });
  });

  it("answers an unknown model, and an API that no target serves, in Google's words", async () => {
    const unknown = await ask(google, "/v1beta/models/nobody:streamGenerateContent", {});
    expect([unknown.status, JSON.parse(unknown.body.toString())]).toMatchObject([
      404,
      { error: { code: 404, status: "NOT_FOUND" } },
    ]);
    const config = {
      providers: { p: { ...google, baseUrl: provider.url }, o: { type: "ollama" as const, baseUrl: provider.url } },
    };
    const unserved = await ask(google, "/v1beta/models/o%2Fllama:streamGenerateContent", {}, { config });
    expect([unserved.status, JSON.parse(unserved.body.toString())]).toMatchObject([
      400,
      { error: { code: 400, status: "INVALID_ARGUMENT" } },
    ]);
  });

  it("checks the TTFT header, since its path says that it streams", async () => {
    const headers = { "x-tfy-ttft-timeout-ms": "soon" };
    expect((await ask(google, "/v1beta/models/fast:streamGenerateContent", {}, { headers })).status).toBe(400);
    provider.use(json(200, {}));
    expect((await ask(google, "/v1beta/models/fast:generateContent", {}, { headers })).status).toBe(200);
  });
});

describe("Interactions", () => {
  it("names a model in the body, or an agent in its place", async () => {
    provider.use(stream("text/event-stream", interactionsWires["text"]));
    await ask(google, "/v1beta/interactions", { model: "fast", stream: true, input: "Hi" });
    expect(JSON.parse(sent().body)).toEqual({ model: "slow:1", stream: true, input: "Hi" });
    await ask(google, "/interactions", { agent: "p/deep-research", stream: true, input: "Hi" }, { mounted: true });
    expect(JSON.parse(sent().body)).toEqual({ agent: "deep-research", stream: true, input: "Hi" });
    expect(sent().path).toBe("/v1beta/interactions");
  });
});

describe("Bedrock", () => {
  const wire = converseWires["text"];

  it("sends the model encoded, and its API key as a bearer token", async () => {
    provider.use(stream(aws, wire.subarray(0, 99), wire.subarray(99)));
    const answer = await ask(
      bedrock,
      "/model/fast/converse-stream",
      { messages: [] },
      { headers: { "x-amzn-bedrock-trace": "ENABLED" } },
    );
    expect([answer.status, answer.headers["content-type"], answer.body.equals(wire)]).toEqual([200, aws, true]);
    expect(sent()).toMatchObject({ path: "/model/slow%3A1/converse-stream", body: '{"messages":[]}' });
    expect(sent().headers).toMatchObject({ authorization: "Bearer b-key", "x-amzn-bedrock-trace": "ENABLED" });
  });

  it("asks the hook to sign exactly what is sent, for each attempt", async () => {
    provider.use(stream(aws, wire));
    const asked: SignableRequest[] = [];
    const sign = async (request: SignableRequest): Promise<Record<string, string>> => {
      asked.push(request);
      return { Authorization: `AWS4-HMAC-SHA256 ${asked.length}`, "x-amz-date": "20260101T000000Z", host: "elsewhere" };
    };
    await ask({ type: "bedrock", region: "eu-west-1", sign }, "/model/fast/converse-stream", { messages: [] });
    const [request] = asked as [SignableRequest];
    expect(request).toMatchObject({ method: "POST", url: `${provider.url}${sent().path}`, region: "eu-west-1" });
    expect(Buffer.from(request.body as Uint8Array).toString()).toBe(sent().body);
    for (const [name, value] of Object.entries(request.headers)) expect(sent().headers[name]).toBe(value);
    expect(sent().headers).toMatchObject({ authorization: "AWS4-HMAC-SHA256 1", "x-amz-date": "20260101T000000Z" });
    expect(sent().headers["host"]).not.toBe("elsewhere");
  });

  it("answers a failure as the AWS SDKs read it", async () => {
    provider.use(stream(aws, awsException("throttlingException", { message: "Slow" })));
    const answer = await ask(bedrock, "/model/fast/converse-stream", { messages: [] });
    expect([answer.status, answer.headers["x-amzn-errortype"], answer.body.toString()]).toEqual([
      429,
      "ThrottlingException",
      '{"message":"Slow"}',
    ]);
  });

  it("does not tell that a credential was refused", async () => {
    provider.use(json(403, { message: "no" }, { "x-amzn-errortype": "AccessDeniedException" }));
    const answer = await ask(bedrock, "/model/fast/converse", { messages: [] });
    expect([answer.status, answer.headers["x-amzn-errortype"]]).toEqual([502, "InternalServerException"]);
  });

  it("relays the paths without a stream", async () => {
    provider.use(json(200, { output: {} }));
    const answer = await ask(bedrock, "/model/p%2Fnova/invoke", { a: 1 });
    expect([answer.status, answer.body.toString(), sent().path]).toEqual([200, '{"output":{}}', "/model/nova/invoke"]);
  });
});

describe("Ollama", () => {
  it("streams where the body does not say otherwise", async () => {
    provider.use(stream("application/x-ndjson", ollamaWires["text"]));
    const answer = await ask({ type: "ollama" }, "/api/chat", { model: "fast" });
    expect(answer.body.toString()).toBe(ollamaWires["text"]);
    expect(sent()).toMatchObject({ path: "/api/chat", body: '{"model":"slow:1"}' });
    provider.use(stream("application/x-ndjson", '{"error":"x"}\n'));
    expect((await ask({ type: "ollama" }, "/api/chat", { model: "fast" })).status).toBe(502);
    expect((await ask({ type: "ollama" }, "/api/chat", { model: "fast", stream: false })).status).toBe(200);
  });
});

describe("Azure", () => {
  const chat = { choices: [{ message: { content: "Hi" } }] };

  it("has its key in a header of its own, and the deployment in the path", async () => {
    provider.use(json(200, chat));
    const azure: ProviderConfig = { type: "azure", apiKey: "a-key", apiVersion: "2026-01-01" };
    await ask(azure, "/v1/chat/completions", { model: "fast", messages: [] });
    expect(sent().path).toBe("/openai/deployments/slow%3A1/chat/completions?api-version=2026-01-01");
    expect([sent().headers["api-key"], sent().headers["authorization"]]).toEqual(["a-key", undefined]);
    await ask(azure, "/v1/responses", { model: "fast", input: "Hi" });
    expect(sent().path).toBe("/openai/responses?api-version=2026-01-01");
  });

  it("has the paths of OpenAI without an API version", async () => {
    provider.use(json(200, chat));
    await ask({ type: "azure", apiKey: "a-key" }, "/v1/chat/completions", { model: "fast", messages: [] });
    expect(sent().path).toBe("/openai/v1/chat/completions");
  });

  it("gives the reason that follows a failure without one", async () => {
    const event = (type: string, fields: object): string =>
      `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
    provider.use(
      stream(
        "text/event-stream",
        event("response.created", { response: { id: "r", error: null } }),
        event("response.failed", { response: { id: "r", status: "failed", error: null } }),
        event("error", { error: { code: "content_policy_violation", message: "Not this." } }),
      ),
    );
    const answer = await ask({ type: "azure", apiKey: "k" }, "/v1/responses", {
      model: "fast",
      stream: true,
      input: "Hi",
    });
    expect([answer.status, JSON.parse(answer.body.toString())]).toMatchObject([
      400,
      { error: { code: "content_policy_violation" } },
    ]);
  });
});

describe("a stream that breaks after release", () => {
  /** Everything up to the break, as text. */
  async function broken(
    only: ProviderConfig,
    url: string,
    body: object,
    wire: Uint8Array,
    type: string,
  ): Promise<string> {
    let read: () => void = () => undefined;
    const firstRead = new Promise<void>((resolve) => (read = resolve));
    provider.use([head(200, { "content-type": type }), chunk(wire), until(() => firstRead), reset()]);
    const parts: Uint8Array[] = [];
    const onPart = (part: Uint8Array): void => {
      parts.push(part);
      read();
    };
    await expect(ask(only, url, body, { onPart })).rejects.toMatchObject({ status: 502 });
    const bytes = Buffer.concat(parts);
    expect(bytes.subarray(0, wire.length).equals(wire)).toBe(true);
    return bytes.subarray(wire.length).toString("latin1");
  }

  it("ends with an exception in Bedrock's framing", async () => {
    const wire = Buffer.concat([
      awsEvent("messageStart", { role: "assistant" }),
      awsEvent("contentBlockDelta", { delta: { text: "Hi" } }),
    ]);
    const rest = await broken(bedrock, "/model/fast/converse-stream", {}, wire, aws);
    expect(rest).toMatch(
      /:exception-type.*modelStreamErrorException.*\{"message":"The connection to the provider broke"\}/s,
    );
  });

  it("ends with an error event for Gemini, and a line for Ollama", async () => {
    const first = Buffer.from(text.slice(0, text.indexOf("\r\n\r\n") + 4));
    const event = await broken(
      google,
      "/v1beta/models/fast:streamGenerateContent?alt=sse",
      {},
      first,
      "text/event-stream",
    );
    expect(event).toMatch(/^\n\ndata: \{"error":\{"code":502,.*\}\n\n$/);
    const line = Buffer.from(`${ollamaWires["text"].split("\n")[0]}\n`);
    const error = await broken({ type: "ollama" }, "/api/chat", { model: "fast" }, line, "application/x-ndjson");
    expect(error).toBe('\n{"error":"The connection to the provider broke"}\n');
  });

  it("just breaks where it is a JSON array", async () => {
    const array = Buffer.from(geminiWires["a JSON array"].slice(0, 300));
    expect(await broken(google, "/v1beta/models/fast:streamGenerateContent", {}, array, "application/json")).toBe("");
  });
});

describe("a compressed answer", () => {
  const request = { model: "fast", stream: true, messages: [] };
  const openai: ProviderConfig = { type: "openai-compatible", apiKey: "k" };

  it("reaches the client decoded where it is no stream, too", async () => {
    provider.use([
      head(200, { "content-type": "application/json", "content-encoding": "gzip" }),
      chunk(gzipSync('{"a":1}')),
      end(),
    ]);
    const answer = await ask(openai, "/v1/chat/completions", { ...request, stream: false });
    expect([answer.headers["content-encoding"], answer.body.toString()]).toEqual([undefined, '{"a":1}']);
    expect(sent().headers["accept-encoding"]).toBe("identity");
  });

  it("is read where it is an error", async () => {
    const error = gzipSync(JSON.stringify({ error: { message: "Slow", code: "slow_down" } }));
    provider.use([head(429, { "content-type": "application/json", "content-encoding": "gzip" }), chunk(error), end()]);
    const answer = await ask(openai, "/v1/chat/completions", request);
    expect([answer.status, JSON.parse(answer.body.toString())]).toMatchObject([
      429,
      { error: { message: "Slow", code: "slow_down" } },
    ]);
  });

  it.each([
    ["compressed twice", "gzip, gzip", gzipSync(gzipSync("data: {}\n\n"))],
    ["in an unknown encoding", "zip", Buffer.from("data: {}\n\n")],
    ["of another encoding than it says", "gzip", Buffer.from("data: {}\n\n")],
    ["a bomb", "gzip", gzipSync(Buffer.alloc(10_000_000))],
  ])("that is %s is a 502", async (_name, encoding, bytes) => {
    provider.use([
      head(200, { "content-type": "text/event-stream", "content-encoding": encoding }),
      chunk(bytes),
      end(),
    ]);
    const answer = await ask(openai, "/v1/chat/completions", request);
    expect([answer.status, JSON.parse(answer.body.toString())]).toMatchObject([
      502,
      { error: { code: "upstream_invalid_body" } },
    ]);
  });

  it("that is cut short is a broken stream", async () => {
    const bytes = gzipSync("data: {}\n\n");
    provider.use([head(200, { "content-encoding": "gzip" }), chunk(bytes.subarray(0, bytes.length - 5)), end()]);
    expect((await ask(openai, "/v1/chat/completions", request)).status).toBe(502);
  });
});
