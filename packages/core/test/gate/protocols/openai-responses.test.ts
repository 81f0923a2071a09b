import { describe, expect, it } from "vitest";
import type { Failure } from "../../../src/errors.js";
import { classifyResponses, openaiResponses } from "../../../src/gate/protocols/openai-responses.js";
import type { ParsedFrame } from "../../../src/gate/protocols/protocol.js";
import { completeOutput, keepalive, lifecycle, neutral, output, type Verdict } from "../../../src/gate/verdict.js";

type Fields = Readonly<Record<string, unknown>>;

function classify(value: unknown, event = "", source: ParsedFrame["source"] = "event"): Verdict {
  return classifyResponses({ event, data: JSON.stringify(value) ?? "{cut", value, source });
}
function of(type: string, fields: Fields = {}): Verdict {
  return classify({ type, sequence_number: 3, ...fields }, type);
}
function item(type: string, fields: Fields = {}): Fields {
  return { output_index: 0, item: { id: "it_1", type, status: "in_progress", ...fields } };
}
function ended(fields: Fields): Fields {
  return { response: { id: "r", object: "response", error: null, output: [], ...fields } };
}

const calls = [
  "function_call",
  "custom_tool_call",
  "web_search_call",
  "file_search_call",
  "code_interpreter_call",
  "image_generation_call",
  "computer_call",
  "mcp_call",
  "local_shell_call",
  "shell_call",
  "apply_patch_call",
  "shell_call_output",
  "mcp_approval_request",
];

describe("a Responses event", () => {
  it.each(["response.created", "response.queued", "response.in_progress"])("is a lifecycle event: %s", (type) => {
    expect(of(type, ended({ status: "in_progress", instructions: "error" }))).toEqual(lifecycle);
    expect(classify({ ...ended({}) }, type)).toEqual(lifecycle);
  });

  it.each(["keepalive", "response.keep_alive", "ping"])("is a keepalive: %s", (type) => {
    expect(of(type)).toEqual(keepalive);
    expect(classify({}, type)).toEqual(keepalive);
  });

  it.each([
    "response.output_text",
    "response.refusal",
    "response.reasoning_text",
    "response.reasoning_summary_text",
    "response.function_call_arguments",
    "response.custom_tool_call_input",
    "response.audio",
    "response.audio.transcript",
    "response.code_interpreter_call_code",
    "response.mcp_call_arguments",
    "response.shell_call_command",
    "response.apply_patch_call_operation_diff",
  ])("is output as a delta that holds something: %s", (field) => {
    expect(of(`${field}.delta`, { delta: "x" })).toEqual(output);
    expect(of(`${field}.delta`, { delta: "" })).toEqual(neutral);
    expect(of(`${field}.delta`)).toEqual(neutral);
  });

  it("is output as the output of a shell", () => {
    expect(of("response.shell_call_output_content.delta", { delta: { stdout: "a" } })).toEqual(output);
    expect(of("response.shell_call_output_content.delta", { delta: { stdout: "", stderr: "" } })).toEqual(neutral);
  });

  it.each<[string, Fields]>([
    ["response.output_text.done", { text: "Hi" }],
    ["response.refusal.done", { refusal: "No" }],
    ["response.reasoning_text.done", { text: "Hm" }],
    ["response.reasoning_summary_text.done", { text: "Hm" }],
    ["response.reasoning_summary_part.done", { part: { type: "summary_text", text: "Hm" } }],
    ["response.content_part.done", { part: { type: "output_text", text: "Hi", annotations: [] } }],
    ["response.function_call_arguments.done", { arguments: "{}" }],
    ["response.custom_tool_call_input.done", { input: "ls" }],
    ["response.audio.transcript.done", { transcript: "Hi" }],
    ["response.code_interpreter_call_code.done", { code: "1" }],
    ["response.mcp_call_arguments.done", { arguments: "{}" }],
    ["response.shell_call_command.done", { command: "ls" }],
    ["response.shell_call_output_content.done", { output: [{ stdout: "a", outcome: { type: "exit", exit_code: 0 } }] }],
    ["response.apply_patch_call_operation_diff.done", { diff: "@@" }],
    ["response.output_item.done", item("message", { content: [{ type: "output_text", text: "Hi" }] })],
    ["response.output_item.done", item("reasoning", { summary: [{ type: "summary_text", text: "Hm" }] })],
    ["response.output_item.done", item("reasoning", { summary: [], encrypted_content: "gAAA" })],
    ["response.output_item.done", item("compaction", { encrypted_content: "gAAA" })],
    ["response.output_item.added", item("message", { content: [{ type: "output_text", text: "Hi" }] })],
    ["response.content_part.added", { part: { type: "output_text", text: "Hi" } }],
    ["response.reasoning_summary_part.added", { part: { type: "summary_text", text: "Hm" } }],
    ["response.output_text.annotation.added", { annotation: { type: "file_citation", index: 3 } }],
    ["response.image_generation_call.partial_image", { partial_image_b64: "iVBO" }],
    ["response.shell_call_command.added", { command: "" }],
  ])("is output with something in it: %s %j", (type, fields) => {
    expect(of(type, fields)).toEqual(output);
  });

  it.each(calls)("is output as an item of type %s, opened or closed", (type) => {
    expect(of("response.output_item.added", item(type))).toEqual(output);
    expect(of("response.output_item.done", item(type))).toEqual(output);
  });

  it.each([
    "web_search_call.in_progress",
    "web_search_call.searching",
    "file_search_call.in_progress",
    "file_search_call.searching",
    "code_interpreter_call.in_progress",
    "code_interpreter_call.interpreting",
    "image_generation_call.in_progress",
    "image_generation_call.generating",
    "mcp_call.in_progress",
  ])("is output as a tool at work: %s", (progress) => {
    expect(of(`response.${progress}`, { item_id: "it_1" })).toEqual(output);
  });

  it.each<[string, Fields]>([
    ["response.output_item.added", item("message", { role: "assistant", content: [] })],
    ["response.output_item.added", item("reasoning", { summary: [], encrypted_content: "gAAA" })],
    ["response.output_item.added", item("mcp_list_tools", { tools: [] })],
    ["response.output_item.done", item("message", { content: [{ type: "output_text", text: "", annotations: [] }] })],
    ["response.output_item.done", item("mcp_list_tools", { error: { type: "http_error", message: "no" } })],
    ["response.output_item.done", item("reasoning", { summary: [] })],
    ["response.content_part.added", { part: { type: "output_text", text: "", annotations: [], logprobs: [] } }],
    ["response.content_part.done", { part: { type: "output_text", text: "" } }],
    ["response.reasoning_summary_part.added", { part: { type: "summary_text", text: "" } }],
    ["response.output_text.done", { text: "" }],
    ["response.function_call_arguments.done", { arguments: "" }],
    ["response.audio.done", {}],
    ...[
      "web_search_call",
      "file_search_call",
      "code_interpreter_call",
      "image_generation_call",
      "mcp_call",
      "mcp_list_tools",
    ].map((tool): [string, Fields] => [`response.${tool}.completed`, { item_id: "it_1" }]),
    ["response.mcp_call.failed", { item_id: "it_1" }],
    ["response.mcp_list_tools.in_progress", { item_id: "it_1" }],
    ["response.mcp_list_tools.failed", { item_id: "it_1" }],
    ["codex.rate_limits", { rate_limits: { limit_reached: true } }],
    ["codex.response.metadata", {}],
    ["responsesapi.websocket_timing", {}],
    ["response.inject.created", {}],
    ["response.something_new", { text: "x" }],
  ])("is neutral: %s %j", (type, fields) => {
    expect(of(type, fields)).toEqual(neutral);
  });

  it.each<[string, unknown]>([
    ["no object", []],
    ["no JSON", undefined],
    ["no type", {}],
  ])("is neutral: %s", (_name, value) => {
    expect(classify(value)).toEqual(neutral);
  });

  it("is a whole answer as response.completed with output", () => {
    expect(of("response.completed", ended({ status: "completed", output: [{ type: "message" }] }))).toEqual(
      completeOutput,
    );
    expect(of("response.incomplete", ended({ status: "incomplete", output: [{ type: "message" }] }))).toEqual(
      completeOutput,
    );
  });

  it.each<[string, Fields, string, number | undefined]>([
    ["response.completed", ended({ status: "completed", usage: { output_tokens: 0 } }), "completed", 0],
    ["response.completed", { response: {} }, "completed", undefined],
    [
      "response.incomplete",
      ended({ incomplete_details: { reason: "max_output_tokens" } }),
      "incomplete:max_output_tokens",
      undefined,
    ],
    ["response.incomplete", ended({ incomplete_details: { reason: "stop" } }), "incomplete:stop", undefined],
    ["response.incomplete", ended({ incomplete_details: null }), "incomplete:unknown", undefined],
  ])("is the end without output: %s %j", (type, fields, reason, outputTokens) => {
    expect(of(type, fields)).toEqual({ kind: "terminal", reason, outputTokens, final: true, complete: true });
  });

  it("is the last event, but not the protocol's own end, as [DONE]", () => {
    const verdict = classifyResponses({ event: "", data: "[DONE]", value: undefined, source: "event" });
    expect(verdict).toEqual({ kind: "terminal", final: true, complete: false });
  });

  it.each<[string, Fields, object]>([
    [
      "flat",
      { code: "server_error", message: "No.", param: null },
      { status: 500, code: "server_error", message: "No. (server_error)", param: null },
    ],
    [
      "nested",
      { error: { type: "tokens", code: "rate_limit_exceeded", message: "No." } },
      { status: 429, code: "rate_limit_exceeded", type: "tokens", message: "No. (rate_limit_exceeded)" },
    ],
    [
      "nested, with a type that maps where the code does not",
      { error: { type: "server_error", code: "new_code", message: "No." } },
      { status: 500, message: "No. (server_error)" },
    ],
    ["without a code", { code: null, message: "No." }, { status: 502, message: "No." }],
  ])("fails as an error event, %s", (_name, fields, failure) => {
    expect(of("error", fields)).toMatchObject({ kind: "failure", failure, complete: true });
    expect(classify({ ...fields }, "error")).toMatchObject({ kind: "failure", failure });
  });

  it.each<[string, number]>([
    ["server_error", 500],
    ["rate_limit_exceeded", 429],
    ["slow_down", 429],
    ["insufficient_quota", 429],
    ["server_is_overloaded", 503],
    ["invalid_prompt", 400],
    ["context_length_exceeded", 400],
    ["image_too_large", 400],
    ["bio_policy", 400],
    ["vector_store_timeout", 502],
    ["new_code", 502],
  ])("fails as response.failed with %s as %i", (code, status) => {
    const verdict = of("response.failed", ended({ status: "failed", error: { code, message: "No." } }));
    expect(verdict).toMatchObject({
      kind: "failure",
      failure: { status, code, message: `No. (${code})` },
      complete: true,
    });
    expect(verdict).not.toHaveProperty("unexplained");
  });

  it.each<[string, unknown]>([
    ["null", null],
    ["missing", undefined],
    ["empty", {}],
    ["empty text", ""],
    ["neither code nor message", { code: null, message: "", type: "server_error" }],
  ])("fails without a reason where the error is %s", (_name, error) => {
    const failure = { kind: "unexplained", status: 502, code: "response_failed" };
    expect(of("response.failed", ended({ status: "failed", error }))).toMatchObject({
      kind: "failure",
      unexplained: true,
      failure,
      complete: true,
    });
  });

  it.each<[string, unknown, object]>([
    ["a code alone", { code: "server_error" }, { status: 500 }],
    ["a message alone", { message: "No." }, { status: 502, message: "No." }],
    ["a number", { code: 503 }, { status: 503 }],
    ["text", "No.", { status: 502, message: "No." }],
  ])("fails with a reason where the error has %s", (_name, error, failure) => {
    const verdict = of("response.failed", ended({ error }));
    expect(verdict).toMatchObject({ kind: "failure", failure });
    expect(verdict).not.toHaveProperty("unexplained");
  });
});

describe("a Responses body that is no stream", () => {
  const whole = { object: "response", error: null, output: [] };

  it.each<[string, Fields, object]>([
    ["completed, with output", { status: "completed", output: [{ type: "message" }] }, completeOutput],
    [
      "completed, empty",
      { status: "completed", usage: { output_tokens: 0 } },
      { kind: "terminal", reason: "completed", outputTokens: 0, final: true, complete: true },
    ],
    [
      "incomplete",
      { status: "incomplete", incomplete_details: { reason: "content_filter" } },
      { kind: "terminal", reason: "incomplete:content_filter" },
    ],
    ["cancelled", { status: "cancelled" }, { kind: "terminal", reason: "cancelled:unknown" }],
    [
      "failed",
      { status: "failed", error: { code: "server_error", message: "No." } },
      { kind: "failure", failure: { status: 500 } },
    ],
    ["failed without a reason", { status: "failed" }, { kind: "failure", unexplained: true }],
    ["in progress", { status: "in_progress" }, neutral],
    ["without a status, with output", { output: [{ type: "message" }] }, completeOutput],
  ])("is judged by its status: %s", (_name, fields, verdict) => {
    expect(classify({ ...whole, ...fields }, "", "json")).toMatchObject(verdict);
  });
});

describe("what a Responses client is told", () => {
  const failure: Failure = {
    kind: "network",
    status: 502,
    code: "upstream_error",
    message: "It broke.",
    retryable: true,
  };

  function eventOf(sequenceNumber: number | undefined, responseId: string | undefined): string {
    return new TextDecoder().decode(openaiResponses.errorEvent({ failure, sequenceNumber, responseId }));
  }

  it("in the stream is response.failed with the next number", () => {
    const text = eventOf(8, "resp_1");
    expect(text).toMatch(/^\n\nevent: response\.failed\ndata: .*\n\n$/);
    expect(JSON.parse(text.slice(text.indexOf("data: ") + 6))).toMatchObject({
      type: "response.failed",
      sequence_number: 9,
      response: { id: "resp_1", status: "failed", error: { code: "upstream_error", message: "It broke." } },
    });
  });

  it("in the stream is number 0 where none was seen", () => {
    expect(eventOf(undefined, undefined)).toContain('"sequence_number":0,');
  });

  it("as a body is OpenAI's", () => {
    expect(JSON.parse(openaiResponses.errorBody(failure, "r"))).toEqual({
      error: { message: "It broke.", type: "server_error", param: null, code: "upstream_error" },
    });
  });
});
