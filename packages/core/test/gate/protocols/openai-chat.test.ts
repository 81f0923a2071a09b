import { describe, expect, it } from "vitest";
import type { Failure } from "../../../src/errors.js";
import { classifyChat, openaiChat } from "../../../src/gate/protocols/openai-chat.js";
import type { ParsedFrame } from "../../../src/gate/protocols/protocol.js";
import { completeOutput, neutral, output, type Verdict } from "../../../src/gate/verdict.js";

type Fields = Readonly<Record<string, unknown>>;

function classify(value: unknown, event = "", source: ParsedFrame["source"] = "event"): Verdict {
  return classifyChat({ event, data: JSON.stringify(value) ?? "{cut", value, source });
}
function choice(delta: unknown, finish: unknown = null, fields: Fields = {}): Fields {
  return { object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: finish, ...fields }] };
}
function sentinel(data: string, event = ""): Verdict {
  return classifyChat({ event, data, value: undefined, source: "event" });
}

describe("a chat chunk", () => {
  it.each<[string, Fields]>([
    ["content", { content: "Hi" }],
    ["content of one space", { content: " " }],
    ["content parts", { content: [{ type: "thinking", thinking: [{ type: "text", text: "Hm" }] }] }],
    ["reasoning", { reasoning: "Hm" }],
    ["reasoning_content beside null content", { content: null, reasoning_content: "Hm" }],
    ["reasoning_text", { reasoning_text: "Hm" }],
    ["reasoning_details with text", { reasoning_details: [{ type: "reasoning.text", text: "Hm", index: 0 }] }],
    ["reasoning_details, encrypted", { reasoning_details: [{ type: "reasoning.encrypted", data: "gAAA", id: "rs" }] }],
    ["thinking", { thinking: "Hm" }],
    ["refusal", { refusal: "No" }],
    ["audio data", { audio: { id: "a", data: "UklG" } }],
    ["audio transcript", { audio: { transcript: "Hi" } }],
    ["images", { images: [{ type: "image_url", image_url: { url: "data:image/png;base64,iVBO" } }] }],
    ["a tool call", { tool_calls: [{ index: 0, id: "c", function: { name: "f", arguments: "" } }] }],
    ["a tool call's arguments", { tool_calls: [{ index: 0, function: { arguments: "" } }] }],
    ["a function call", { function_call: { name: "f", arguments: "" } }],
  ])("is output: %s", (_name, delta) => {
    expect(classify(choice(delta))).toEqual(output);
    expect(classify(choice({ role: "assistant", ...delta }, ""))).toEqual(output);
    expect(classify(choice(delta, "length"))).toEqual(completeOutput);
  });

  it("is output by any of its choices", () => {
    const choices = [
      { index: 0, delta: {} },
      { index: 1, delta: { content: "Hi" } },
    ];
    expect(classify({ choices })).toEqual(output);
  });

  it("is output as an answer that is not streamed", () => {
    const choices = [{ index: 0, message: { role: "assistant", content: "" }, finish_reason: "stop" }];
    expect(classify({ object: "chat.completion", choices }, "", "json")).toEqual(completeOutput);
  });

  it.each<[string, unknown]>([
    ["role and empty content", choice({ role: "assistant", content: "", refusal: null })],
    ["null content", choice({ role: "assistant", content: null, reasoning_content: "" })],
    ["no delta", choice(undefined, null, { content_filter_offsets: { check_offset: 1 } })],
    ["empty tool calls", choice({ tool_calls: [] })],
    ["null function call", choice({ function_call: null })],
    ["audio without data", choice({ audio: { id: "a", expires_at: 1 } })],
    [
      "empty reasoning details",
      choice({ reasoning_details: [{ type: "reasoning.text", text: "", format: "f", index: 0 }] }),
    ],
    ["annotations", choice({ annotations: [] })],
    ["empty finish reason", choice({ content: "" }, "")],
    [
      "prompt filter results",
      { choices: [], prompt_filter_results: [{ content_filter_results: { hate: { filtered: false } } }] },
    ],
    [
      "an error deeper down",
      choice({ content: "" }, null, {
        content_filter_results: { error: { code: "content_filter_error", message: "x" } },
      }),
    ],
    ["an error that is null", { error: null, choices: [] }],
    ["usage that is null", { choices: [], usage: null }],
    ["Groq's id", { choices: [], x_groq: { id: "r" } }],
    ["another object", { object: "chat.trace" }],
    ["no object", 5],
    ["no JSON", undefined],
  ])("is neutral: %s", (_name, value) => {
    expect(classify(value)).toEqual(neutral);
  });

  it.each(["stop", "length", "tool_calls", "function_call", "content_filter", "eos"])(
    "completes the stream with finish reason %s, but is not its last event",
    (reason) => {
      expect(classify(choice({}, reason))).toEqual({ kind: "terminal", reason, final: false, complete: true });
    },
  );

  it("says the most telling of several finish reasons", () => {
    const choices = [
      { index: 0, delta: {}, finish_reason: "stop" },
      { index: 1, delta: {}, finish_reason: "length" },
    ];
    expect(classify({ choices })).toMatchObject({ reason: "length" });
  });

  it("tells usage, with or without a finish reason", () => {
    const usage = { prompt_tokens: 3, completion_tokens: 0 };
    expect(classify({ choices: [], usage })).toEqual({
      kind: "terminal",
      outputTokens: 0,
      final: false,
      complete: false,
    });
    expect(classify({ ...choice({}, "stop"), usage })).toMatchObject({
      reason: "stop",
      outputTokens: 0,
      complete: true,
    });
  });

  it("ends the stream with [DONE], and with nothing that looks like it", () => {
    expect(sentinel("[DONE]")).toEqual({ kind: "terminal", final: true, complete: true });
    expect(sentinel(" [DONE] ", "done")).toMatchObject({ final: true });
    expect(sentinel("[DONE")).toEqual(neutral);
    expect(classify(choice({ content: "[DONE]" }))).toEqual(output);
  });

  it.each<[string, Fields, object]>([
    [
      "OpenAI",
      { error: { message: "No.", type: "server_error", param: null, code: null } },
      { status: 500, code: "server_error", type: "server_error" },
    ],
    ["SGLang", { error: { object: "error", message: "No.", type: "BadRequestError", code: 400 } }, { status: 400 }],
    ["old vLLM", { object: "error", message: "No.", type: "BadRequestError", code: 400 }, { status: 400 }],
    [
      "OpenRouter",
      { choices: [], error: { code: 503, message: "No.", metadata: { error_type: "x" } } },
      { status: 503 },
    ],
    [
      "OpenRouter with a choice",
      { ...choice({ content: "" }, "error"), error: { code: 429, message: "No." } },
      { status: 429 },
    ],
    ["LiteLLM", { error: { message: "No.", type: "None", param: "None", code: "503" } }, { status: 503 }],
    ["TGI", { error: "No.", error_type: "overloaded" }, { status: 429, message: "No." }],
    [
      "Cerebras",
      { message: "No.", type: "too_many_requests_error", param: "q", code: "request_quota_exceeded" },
      { message: "No." },
    ],
    ["Groq", { ...choice({}), x_groq: { id: "r", error: "No." } }, { message: "No." }],
    ["problem+json", { status: 429, title: "Too Many Requests" }, { status: 429 }],
    [
      "DeepSeek",
      choice({ content: "" }, "insufficient_system_resource"),
      { status: 503, code: "insufficient_system_resource" },
    ],
    ["a finish reason", choice({ content: "" }, "error"), { status: 502, code: "finish_reason_error" }],
    [
      "a native finish reason",
      choice({}, "stop", { native_finish_reason: "network_error" }),
      { status: 502, code: "network_error" },
    ],
    [
      "a bare native finish reason",
      choice({}, "stop", { native_finish_reason: "error" }),
      { code: "finish_reason_error" },
    ],
    ["output in the same frame", choice({ content: "Hi" }, "error"), { code: "finish_reason_error" }],
  ])("is a failure: %s", (_name, value, failure) => {
    expect(classify(value)).toMatchObject({ kind: "failure", failure });
  });

  it("is a failure by its name, flat or nested or neither", () => {
    expect(classify({ code: 400, message: "No." }, "error")).toMatchObject({ failure: { status: 400 } });
    expect(classify({ error: { code: 400, message: "No." } }, "error")).toMatchObject({ failure: { status: 400 } });
    expect(sentinel("No.", "error")).toMatchObject({ kind: "failure", failure: { status: 502 } });
  });

  it("is a failure as an array around an error", () => {
    expect(
      classify([{ error: { code: 429, message: "No.", status: "RESOURCE_EXHAUSTED" } }], "", "json"),
    ).toMatchObject({ failure: { status: 429 } });
  });
});

describe("what a chat client is told", () => {
  const failure: Failure = {
    kind: "network",
    status: 502,
    code: "upstream_error",
    message: "It broke.",
    retryable: true,
  };

  it.each<[number, string]>([
    [400, "invalid_request_error"],
    [401, "authentication_error"],
    [403, "permission_error"],
    [404, "not_found_error"],
    [408, "timeout_error"],
    [409, "conflict_error"],
    [422, "invalid_request_error"],
    [429, "rate_limit_error"],
    [500, "server_error"],
    [502, "server_error"],
    [503, "server_error"],
    [504, "timeout_error"],
  ])("a %i is a %s", (status, type) => {
    const body: unknown = JSON.parse(openaiChat.errorBody({ ...failure, status }, "req_1"));
    expect(body).toEqual({ error: { message: "It broke.", type, param: null, code: "upstream_error" } });
  });

  it("keeps the provider's type and param", () => {
    const body: unknown = JSON.parse(openaiChat.errorBody({ ...failure, type: "tokens", param: "model" }, "r"));
    expect(body).toMatchObject({ error: { type: "tokens", param: "model" } });
  });

  it("in the stream is the same body as an event without a name", () => {
    const event = new TextDecoder().decode(openaiChat.errorEvent({ failure, sequenceNumber: 4, responseId: "r" }));
    expect(event).toBe(`\n\ndata: ${openaiChat.errorBody(failure, "")}\n\n`);
  });
});
