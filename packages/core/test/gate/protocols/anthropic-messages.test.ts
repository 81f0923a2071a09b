import { describe, expect, it } from "vitest";
import type { Failure } from "../../../src/errors.js";
import { anthropicMessages, classifyAnthropic } from "../../../src/gate/protocols/anthropic-messages.js";
import type { ParsedFrame } from "../../../src/gate/protocols/protocol.js";
import { completeOutput, keepalive, neutral, output, type Verdict } from "../../../src/gate/verdict.js";

type Fields = Readonly<Record<string, unknown>>;

function classify(value: unknown, event = "", source: ParsedFrame["source"] = "event"): Verdict {
  return classifyAnthropic({ event, data: JSON.stringify(value) ?? "{cut", value, source });
}
function start(block: Fields): Fields {
  return { type: "content_block_start", index: 0, content_block: block };
}
function delta(fields: Fields): Fields {
  return { type: "content_block_delta", index: 0, delta: fields };
}
function end(reason: unknown, usage?: Fields): Fields {
  return { type: "message_delta", delta: { stop_reason: reason, stop_sequence: null }, usage };
}

const citation = { type: "char_location", cited_text: "x", document_index: 0 };

describe("an Anthropic event", () => {
  it.each<[string, Fields]>([
    ["text_delta", delta({ type: "text_delta", text: "Hi" })],
    ["text_delta of one space", delta({ type: "text_delta", text: " " })],
    ["thinking_delta", delta({ type: "thinking_delta", thinking: "Hm" })],
    ["signature_delta", delta({ type: "signature_delta", signature: "EqQB" })],
    ["input_json_delta", delta({ type: "input_json_delta", partial_json: "{" })],
    ["citations_delta", delta({ type: "citations_delta", citation })],
    ["compaction_delta", delta({ type: "compaction_delta", content: "So far" })],
    ["text block with text", start({ type: "text", text: "Hi" })],
    ["thinking block with a signature", start({ type: "thinking", thinking: "", signature: "EqQB" })],
    ["compaction block with content", start({ type: "compaction", content: "So far" })],
    ["tool_use block", start({ type: "tool_use", id: "t", name: "f", input: {} })],
    ["server_tool_use block", start({ type: "server_tool_use", id: "t", name: "web_search", input: {} })],
    ["mcp_tool_use block", start({ type: "mcp_tool_use", id: "t", name: "f", input: {} })],
    ["redacted_thinking block", start({ type: "redacted_thinking", data: "Em" })],
    ["container_upload block", start({ type: "container_upload", file_id: "f" })],
    ...[
      "web_search_tool_result",
      "web_fetch_tool_result",
      "code_execution_tool_result",
      "bash_code_execution_tool_result",
      "text_editor_code_execution_tool_result",
      "tool_search_tool_result",
      "advisor_tool_result",
      "mcp_tool_result",
    ].map((type): [string, Fields] => [`${type} block`, start({ type, tool_use_id: "t", content: [] })]),
    [
      "tool result with an error in it",
      start({
        type: "web_search_tool_result",
        content: { type: "web_search_tool_result_error", error_code: "unavailable" },
      }),
    ],
  ])("is output: %s", (_name, value) => {
    expect(classify(value, String(value["type"]))).toEqual(output);
    expect(classify(value)).toEqual(output);
  });

  it.each<[string, unknown]>([
    ["message_start", { type: "message_start", message: { content: [], usage: { output_tokens: 8 } } }],
    ["empty text block", start({ type: "text", text: "" })],
    ["empty text block with citations", start({ type: "text", text: "", citations: [] })],
    ["empty thinking block", start({ type: "thinking", thinking: "", signature: "" })],
    ["empty compaction block", start({ type: "compaction", content: null })],
    [
      "fallback block",
      start({ type: "fallback", from: { model: "claude-opus-4" }, to: { model: "claude-sonnet-4-5" } }),
    ],
    ["unknown block", start({ type: "hologram", label: "x" })],
    ["empty text_delta", delta({ type: "text_delta", text: "" })],
    ["empty thinking_delta", delta({ type: "thinking_delta", thinking: "" })],
    ["empty input_json_delta", delta({ type: "input_json_delta", partial_json: "" })],
    ["empty compaction_delta", delta({ type: "compaction_delta", content: null })],
    ["content_block_stop", { type: "content_block_stop", index: 0 }],
    ["unknown event", { type: "message_annotation", note: "x" }],
    ["event whose error is null", { type: "content_block_stop", error: null }],
    ["a message inside the stream", { type: "message", content: [] }],
    ["no object", "text"],
    ["no JSON", undefined],
  ])("is neutral: %s", (_name, value) => {
    expect(classify(value)).toEqual(neutral);
  });

  it.each<[unknown, string]>([
    [{ type: "ping" }, ""],
    [{}, "ping"],
  ])("is a keepalive: %j named '%s'", (value, event) => {
    expect(classify(value, event)).toEqual(keepalive);
  });

  it.each([
    "end_turn",
    "max_tokens",
    "stop_sequence",
    "tool_use",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
    "compaction",
  ])("tells the stop reason %s, which does not end the stream", (reason) => {
    const verdict = { kind: "terminal", reason, outputTokens: 7, final: false, complete: false };
    expect(classify(end(reason, { output_tokens: 7 }))).toEqual(verdict);
  });

  it("tells usage without a stop reason", () => {
    expect(classify(end(null, { output_tokens: 0 }))).toEqual({
      kind: "terminal",
      outputTokens: 0,
      final: false,
      complete: false,
    });
  });

  it("ends the stream with message_stop", () => {
    expect(classify({ type: "message_stop" })).toEqual({ kind: "terminal", final: true, complete: true });
  });

  it("goes by its type, and by its name where it has none", () => {
    expect(classify({}, "message_stop")).toMatchObject({ final: true });
    expect(classify({ type: "ping" }, "message_stop")).toEqual(keepalive);
  });

  it("is a whole answer where the body is one", () => {
    const message = { type: "message", content: [], stop_reason: "end_turn" };
    expect(classify(message, "", "json")).toEqual(completeOutput);
  });

  it.each<[string, number]>([
    ["invalid_request_error", 400],
    ["authentication_error", 401],
    ["billing_error", 402],
    ["permission_error", 403],
    ["not_found_error", 404],
    ["conflict_error", 409],
    ["request_too_large", 413],
    ["rate_limit_error", 429],
    ["api_error", 500],
    ["timeout_error", 504],
    ["overloaded_error", 503],
    ["a_new_error", 502],
  ])("fails with %s as %i", (type, status) => {
    const value = { type: "error", error: { details: null, type, message: "No." }, request_id: "req_1" };
    for (const event of ["error", ""]) {
      expect(classify(value, event)).toMatchObject({
        kind: "failure",
        failure: { status, type, code: type, message: "No." },
      });
    }
  });

  it.each<[string, unknown, ParsedFrame["source"]]>([
    ["a JSON body", { type: "error", error: { type: "overloaded_error", message: "No." } }, "json"],
    ["a bare line", { type: "error", error: { type: "overloaded_error", message: "No." } }, "stray"],
    ["an error without its type", { error: { type: "overloaded_error", message: "No." } }, "event"],
    ["a flat error", { type: "error", code: "overloaded_error", message: "No." }, "event"],
  ])("fails as %s", (_name, value, source) => {
    expect(classify(value, "", source)).toMatchObject({ kind: "failure", failure: { status: 503, message: "No." } });
  });

  it("fails by its name alone, whatever the data is", () => {
    expect(
      classifyAnthropic({ event: "error", data: "upstream went away", value: undefined, source: "event" }),
    ).toMatchObject({
      kind: "failure",
      failure: { status: 502, message: "upstream went away" },
    });
  });
});

describe("what an Anthropic client is told", () => {
  const failure: Failure = {
    kind: "ttft-timeout",
    status: 408,
    code: "ttft_timeout",
    message: "Too slow.",
    retryable: true,
  };

  it.each<[number, string]>([
    [400, "invalid_request_error"],
    [401, "authentication_error"],
    [402, "billing_error"],
    [403, "permission_error"],
    [404, "not_found_error"],
    [408, "timeout_error"],
    [409, "conflict_error"],
    [413, "request_too_large"],
    [422, "invalid_request_error"],
    [429, "rate_limit_error"],
    [500, "api_error"],
    [502, "api_error"],
    [503, "overloaded_error"],
    [504, "timeout_error"],
  ])("a %i is a %s", (status, type) => {
    const body: unknown = JSON.parse(anthropicMessages.errorBody({ ...failure, status }, "req_1"));
    expect(body).toEqual({ type: "error", error: { type, message: "Too slow." }, request_id: "req_1" });
  });

  it("is the provider's own type where it sent one", () => {
    expect(anthropicMessages.errorBody({ ...failure, type: "api_error" }, "r")).toContain('"type":"api_error"');
  });

  it("in the stream is one error event after a blank line", () => {
    const event = new TextDecoder().decode(
      anthropicMessages.errorEvent({ failure, sequenceNumber: undefined, responseId: undefined }),
    );
    expect(event).toBe(
      '\n\nevent: error\ndata: {"type":"error","error":{"type":"timeout_error","message":"Too slow."}}\n\n',
    );
  });
});
