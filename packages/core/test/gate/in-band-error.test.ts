import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { failureFromError, failureFromHttp, findInBandError } from "../../src/gate/in-band-error.js";
import type { InBandErrorTraits } from "../../src/gate/in-band-error.js";
import type { ParsedFrame } from "../../src/gate/protocols/protocol.js";
import type { Failure } from "../../src/errors.js";

const chat: InBandErrorTraits = { flatErrors: true };
const responses: InBandErrorTraits = { nameInMessage: true };

function parse(data: string): unknown {
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}

function find(
  value: unknown,
  traits: InBandErrorTraits = {},
  source: ParsedFrame["source"] = "event",
  event = "",
): Failure | undefined {
  const data = JSON.stringify(value);
  return findInBandError({ event, data, value, source }, traits)?.failure;
}

function findText(data: string, event: string, source: ParsedFrame["source"] = "event"): Failure | undefined {
  return findInBandError({ event, data, value: parse(data), source }, {})?.failure;
}

describe("error events", () => {
  const body = { type: "rate_limit_error", message: "Slow down" };

  it("reads Anthropic's frame with details and request id", () => {
    const error = { details: null, type: "overloaded_error", message: "Overloaded" };
    expect(find({ type: "error", error, request_id: "req_1" })).toEqual({
      kind: "in-band",
      status: 503,
      originalStatus: 529,
      code: "overloaded_error",
      type: "overloaded_error",
      message: "Overloaded",
      retryable: true,
    });
  });

  it.each<[string, string, object]>([
    ["an event name, nested", "error", { error: body }],
    ["an event name, flat", "error", body],
    ["a type, nested", "", { type: "error", error: body }],
    ["an event_type, nested", "", { event_type: "error", error: body }],
    ["an event name, with a null error", "error", { ...body, error: null }],
  ])("finds %s", (_, event, value) => {
    expect(find(value, {}, "event", event)).toMatchObject({ status: 429, message: "Slow down" });
  });

  it("finds a flat error by its type", () => {
    const flat = { type: "error", code: "rate_limit_exceeded", message: "x", param: null, sequence_number: 1 };
    expect(find(flat)).toMatchObject({ status: 429, code: "rate_limit_exceeded", param: null });
  });

  it("keeps a flat error without a code at 502", () => {
    const failure = find({ type: "error", code: null, message: "x", param: null }, responses);
    expect(failure).toMatchObject({ status: 502, code: "upstream_error", message: "x" });
    expect(failure).not.toHaveProperty("type");
  });

  it("finds a nested string", () => {
    expect(find({ type: "error", error: "It broke" })).toMatchObject({
      status: 502,
      code: "it_broke",
      message: "It broke",
    });
  });

  it("takes data that is no JSON as the message", () => {
    expect(findText("upstream connect error", "error")).toEqual({
      kind: "in-band",
      status: 502,
      code: "upstream_error",
      message: "upstream connect error",
      retryable: true,
    });
  });

  it("takes data of one known word as a name", () => {
    expect(findText("overloaded_error", "error")).toMatchObject({ status: 503, code: "overloaded_error" });
  });

  it("bounds an error that is text", () => {
    expect(findText("x".repeat(10_000), "error")?.message).toHaveLength(500);
  });

  it("fails with a general sentence on an error event that says nothing", () => {
    expect(findText("null", "error")?.message).toBe("The provider reported an error.");
    expect(find({ type: "error" })?.message).toBe("The provider reported an error.");
  });
});

describe("a top-level error", () => {
  it.each<[string, object, Partial<Failure>]>([
    [
      "OpenAI",
      { error: { message: "x", type: "server_error", param: null, code: null } },
      { status: 500, code: "server_error" },
    ],
    [
      "vLLM",
      { error: { object: "error", message: "x", type: "BadRequestError", param: null, code: 400 } },
      { status: 400, code: "400" },
    ],
    [
      "Azure",
      { error: { message: "x", type: null, param: "prompt", code: "content_filter", status: 400 } },
      { status: 400, code: "content_filter", param: "prompt" },
    ],
    [
      "OpenRouter",
      { choices: [], error: { code: 502, message: "x", metadata: { error_type: "provider_unavailable" } } },
      { status: 502, code: "502" },
    ],
    [
      "OpenRouter beside a delta",
      { choices: [{ delta: { content: "hi" }, finish_reason: "error" }], error: { code: 429, message: "x" } },
      { status: 429 },
    ],
    ["LiteLLM", { error: { message: "x", type: "None", param: "None", code: "503" } }, { status: 503, code: "503" }],
    ["TGI", { error: "x", error_type: "overloaded" }, { status: 429, code: "overloaded", message: "x" }],
    ["TGI's OpenAI route", { error: { message: "x", http_status_code: 422 } }, { status: 422, code: "upstream_error" }],
    ["xAI", { code: "The service is currently unavailable", error: "x" }, { status: 503, message: "x" }],
    ["Gemini", { error: { code: 503, message: "x", status: "UNAVAILABLE" } }, { status: 503, code: "UNAVAILABLE" }],
    [
      "Gemini without a number",
      { error: { message: "x", status: "OUT_OF_RANGE" } },
      { status: 400, code: "OUT_OF_RANGE" },
    ],
    [
      "Interactions",
      { event_type: "error", error: { code: "gateway_timeout", message: "x" } },
      { status: 504, code: "gateway_timeout" },
    ],
    ["Ollama", { error: "x" }, { status: 502, message: "x" }],
    ["an empty object", { error: {} }, { status: 502, message: "The provider reported an error." }],
    ["a flag", { error: true, code: 429, message: "x" }, { status: 429, message: "x" }],
    ["a number", { error: 503, message: "x" }, { status: 503, message: "x" }],
  ])("is a failure: %s", (_, value, expected) => {
    for (const source of ["event", "json", "stray"] as const) expect(find(value, {}, source)).toMatchObject(expected);
  });

  it.each([null, false, "", "None", 0])("is absent when it is %j", (error) => {
    expect(find({ error, choices: [{ delta: { content: "hi" } }] }, chat)).toBeUndefined();
  });

  it.each<[string, unknown]>([
    [
      "a filter that could not run",
      { choices: [{ content_filter_results: { error: { code: "content_filter_error", message: "x" } } }] },
    ],
    [
      "a tool that failed",
      {
        type: "content_block_start",
        content_block: {
          type: "web_search_tool_result",
          content: { type: "web_search_tool_result_error", error_code: "unavailable" },
        },
      },
    ],
    ["a response without an error", { type: "response.created", response: { status: "in_progress", error: null } }],
    ["a tool list that failed", { type: "response.mcp_list_tools.failed", item_id: "x" }],
    ["a rate limit notice", { type: "codex.rate_limits", rate_limits: { limit_reached: true } }],
    [
      "a model that writes of errors",
      {
        type: "content_block_delta",
        delta: { type: "text_delta", text: '{"type":"error","error":{"type":"overloaded_error"}}' },
      },
    ],
  ])("is not searched for in the depth: %s", (_, value) => {
    expect(find(value, chat)).toBeUndefined();
    expect(find(value, chat, "stray")).toBeUndefined();
  });

  it("is found in an element of an array", () => {
    const value = [{ candidates: [] }, { error: { code: 400, message: "x", status: "INVALID_ARGUMENT" } }];
    expect(find(value, {}, "json")).toMatchObject({ status: 400, code: "INVALID_ARGUMENT" });
  });
});

describe("flat errors of Chat Completions", () => {
  it.each<[string, object, Partial<Failure>]>([
    [
      "old vLLM",
      { object: "error", message: "x", type: "BadRequestError", param: null, code: 400 },
      { status: 400, code: "400" },
    ],
    [
      "Mistral",
      { object: "error", message: "x", type: "rate_limit_error", param: null, code: "1300" },
      { status: 429, code: "1300" },
    ],
    [
      "Cerebras",
      { message: "x", type: "too_many_requests_error", param: "quota", code: "request_quota_exceeded" },
      { status: 429, code: "request_quota_exceeded" },
    ],
    [
      "Groq",
      { choices: [{ delta: {} }], x_groq: { id: "x", error: "over capacity" } },
      { status: 502, message: "over capacity" },
    ],
  ])("are found: %s", (_, value, expected) => {
    expect(find(value, chat)).toMatchObject(expected);
    expect(find(value)).toBeUndefined();
  });

  it.each<[string, object]>([
    ["a chunk", { id: "c", object: "chat.completion.chunk", choices: [{ delta: { role: "assistant" } }] }],
    ["Groq's id", { choices: [], x_groq: { id: "x", seed: 1 } }],
    ["Groq's null", { choices: [], x_groq: { error: null } }],
    ["an event of another API", { type: "message-start", delta: { message: { role: "assistant" } } }],
    ["a message object", { type: "message_start", message: { role: "assistant" } }],
    ["a bare message", { message: "hello" }],
    ["choices beside a message", { message: "x", code: "y", choices: [] }],
  ])("are not %s", (_, value) => {
    expect(find(value, chat)).toBeUndefined();
  });
});

describe("problem+json", () => {
  it.each(["event", "json", "stray"] as const)("is a failure as %s", (source) => {
    const failure = find({ status: 429, title: "Too Many Requests" }, {}, source);
    expect(failure).toMatchObject({ status: 429, code: "upstream_error", message: "Too Many Requests" });
  });

  it("is told by its detail before its title, and its type is no name", () => {
    const failure = find({ type: "about:blank", title: "Busy", detail: "Queue is full", status: 503 }, {}, "json");
    expect(failure).toMatchObject({ status: 503, message: "Queue is full" });
    expect(failure).not.toHaveProperty("type");
  });

  it("is not an answer with a status, nor a status that is no error", () => {
    expect(find({ status: 500, choices: [] }, {}, "json")).toBeUndefined();
    expect(find({ status: 200, title: "OK" }, {}, "json")).toBeUndefined();
    expect(find({ status: "completed", output: [] }, {}, "json")).toBeUndefined();
  });

  it("may have its number in code where it is a whole body", () => {
    expect(find({ code: 503, msg: "busy" }, {}, "json")).toMatchObject({ status: 503, message: "busy" });
    expect(find({ code: 503, msg: "busy" })).toBeUndefined();
  });
});

describe("outside the framing", () => {
  it("takes the value of a field named error as the error", () => {
    const value = { code: 400, message: "context size exceeded", type: "invalid_request_error" };
    expect(find(value, {}, "stray")).toMatchObject({ status: 400, code: "400", message: "context size exceeded" });
  });

  it("takes text as an error", () => {
    expect(findText("slot unavailable", "", "stray")).toMatchObject({ status: 502, message: "slot unavailable" });
    expect(findText('"slot unavailable"', "", "stray")?.message).toBe("slot unavailable");
  });

  it.each(["", " ", "null", "false", '{"error": {"mess', "[1, 2"])("finds no error in %j", (data) => {
    expect(findText(data, "", "stray")).toBeUndefined();
  });

  it.each<[string, unknown]>([
    ["a chunk", { candidates: [{ content: { parts: [{ text: "hi" }] } }] }],
    ["an event", { type: "message_start", message: { role: "assistant" } }],
    ["a ping", { type: "ping" }],
  ])("finds no error in a bare line that is %s", (_, value) => {
    expect(find(value, chat, "stray")).toBeUndefined();
  });
});

describe("the client's message", () => {
  it.each<[string, object, string]>([
    ["the code", { type: "tokens", code: "rate_limit_exceeded", message: "Slow" }, "Slow (rate_limit_exceeded)"],
    [
      "the type for an unknown code",
      { type: "rate_limit_error", code: "zz_9", message: "Slow" },
      "Slow (rate_limit_error)",
    ],
    [
      "the type for a number",
      { type: "invalid_request_error", code: 400, message: "No" },
      "No (invalid_request_error)",
    ],
    ["an unknown code", { code: "brand_new", message: "No" }, "No (brand_new)"],
    ["nothing without a name", { code: "503", message: "No" }, "No"],
    ["a name once", { code: "slow_down", message: "No (slow_down)" }, "No (slow_down)"],
  ])("ends in %s in the Responses API", (_, error, message) => {
    expect(find({ type: "error", error }, responses)?.message).toBe(message);
  });

  it("is the wording alone elsewhere", () => {
    expect(find({ error: { code: "slow_down", message: "Slow" } }, chat)?.message).toBe("Slow");
  });

  it("names the code when there is no wording", () => {
    expect(find({ error: { code: "slow_down" } }, responses)?.message).toBe(
      "The provider reported an error (slow_down).",
    );
  });

  it("is bounded", () => {
    expect(find({ error: { message: "word ".repeat(5000) } })?.message.length).toBeLessThanOrEqual(4000);
  });

  it.each([
    "Incorrect API key provided: sk-proj-abc123DEF456. You can find",
    "Incorrect API key provided: plainkey***7890.",
    "Invalid key AIzaSyA1234567890abcdefghijk",
    "Sent Authorization: Bearer abc123.def456-ghi789",
    "GET https://x.example/v1?key=secret123&alt=sse failed",
  ])("shows no key: %s", (message) => {
    const shown = find({ error: { message } })?.message ?? "";
    expect(shown).toContain("[redacted]");
    expect(shown).not.toMatch(/abc123|plainkey|AIzaSy|secret123|7890/);
  });

  it("leaves other words alone", () => {
    const message = "Missing bearer authentication in header; ask-me-anything task-based disk-usage";
    expect(find({ error: { message } })?.message).toBe(message);
  });
});

describe("the delay", () => {
  it("is read from the wording of a 429", () => {
    const error = { code: "rate_limit_exceeded", message: "Please try again in 1.5s." };
    expect(failureFromError(error, undefined, responses).retryAfterMs).toBe(1500);
  });

  it("is read on 429 and 503 only", () => {
    expect(find({ error: { code: 503, message: "x", retry_after: 2 } })?.retryAfterMs).toBe(2000);
    expect(find({ error: { code: 500, message: "x", retry_after: 2 } })).not.toHaveProperty("retryAfterMs");
  });
});

describe("failureFromHttp", () => {
  it("keeps the status and takes the rest from the body", () => {
    const body = JSON.stringify({
      error: { message: "No", type: "invalid_request_error", param: "model", code: "model_not_found" },
    });
    expect(failureFromHttp(404, body, chat)).toEqual({
      kind: "http",
      status: 404,
      code: "model_not_found",
      type: "invalid_request_error",
      param: "model",
      message: "No",
      retryable: false,
    });
  });

  it("knows an overload and a used-up quota by name", () => {
    const overload = JSON.stringify({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } });
    expect(failureFromHttp(529, overload, {})).toMatchObject({ status: 503, originalStatus: 529 });
    const quota = JSON.stringify({ error: { message: "x", type: "insufficient_quota" } });
    expect(failureFromHttp(429, quota, {})).toMatchObject({ status: 429, retryable: false });
  });

  it.each<[string, string, string]>([
    ["Bedrock", '{"message":"Too many requests"}', "Too many requests"],
    ["FastAPI", '{"detail":[{"loc":["body"],"msg":"field required"}]}', "field required"],
    ["a string", '{"error":"model not loaded"}', "model not loaded"],
    ["an array", '[{"error":{"code":400,"message":"bad","status":"INVALID_ARGUMENT"}}]', "bad"],
    ["a list", '{"success":false,"errors":[{"code":1000,"message":"no route"}]}', "no route"],
    ["problem+json", '{"status":429,"title":"Too Many Requests"}', "Too Many Requests"],
  ])("reads the message of %s", (_, body, message) => {
    expect(failureFromHttp(400, body, {})).toMatchObject({ status: 400, message });
  });

  it.each(["", "<html>Bad gateway</html>", "null", "busy"])("is general about a body that is no error: %s", (body) => {
    expect(failureFromHttp(503, body, {})).toEqual({
      kind: "http",
      status: 503,
      code: "upstream_error",
      message: "The provider answered with HTTP status 503.",
      retryable: true,
    });
  });

  it("tells a policy 403 from a credential one", () => {
    const flagged = JSON.stringify({
      error: { code: 403, message: "x", metadata: { reasons: ["hate"], flagged_input: "y" } },
    });
    expect(failureFromHttp(403, flagged, {})).toMatchObject({ status: 403, policy: true });
    expect(failureFromHttp(403, '{"error":{"message":"x"}}', {})).not.toHaveProperty("policy");
  });

  it("makes a redirect a 502", () => {
    expect(failureFromHttp(302, "", {})).toMatchObject({ status: 502 });
  });
});

it("never throws, and answers with a status of 400 to 599 and a message", () => {
  const source = fc.constantFrom<ParsedFrame["source"]>("event", "json", "stray");
  const key = fc.constantFrom(
    "error",
    "code",
    "status",
    "type",
    "error_type",
    "message",
    "object",
    "metadata",
    "details",
    "x_groq",
  );
  const value = fc.letrec((tie) => ({
    node: fc.oneof({ depthSize: "small" }, fc.jsonValue(), fc.dictionary(key, tie("node")), fc.array(tie("node"))),
  })).node;
  fc.assert(
    fc.property(value, source, fc.constantFrom("", "error"), (json, from, event) => {
      const failure = find(json, { flatErrors: true, nameInMessage: true }, from, event);
      const answered = failureFromHttp(500, JSON.stringify(json), { nameInMessage: true });
      for (const found of failure === undefined ? [answered] : [failure, answered]) {
        expect(found.status).toBeGreaterThanOrEqual(400);
        expect(found.status).toBeLessThanOrEqual(599);
        expect(found.message).not.toBe("");
        expect(found.code).not.toBe("");
      }
    }),
  );
});
