import { describe, expect, it } from "vitest";
import type { Failure } from "../../src/errors.js";
import { createAwsDecoder } from "../../src/gate/aws-frames.js";
import { networkFailure } from "../../src/gate/failures.js";
import { gateStream, type GateStreamOptions } from "../../src/gate/gate-stream.js";
import { protocols } from "../../src/gate/protocols/protocols.js";
import type { GateProtocol } from "../../src/gate/protocols/protocol.js";
import { ManualClock } from "../../src/testing/index.js";
import { awsChunk, awsError, awsEvent, awsException } from "../fixtures/aws-messages.js";
import { CaseSource } from "../stream-cases.js";

function protocol(name: string): GateProtocol {
  return protocols.get(name) as GateProtocol;
}

async function judged(
  name: string,
  bytes: string | Uint8Array,
  options: Partial<GateStreamOptions> = {},
): Promise<object> {
  const source = new CaseSource([new Uint8Array(Buffer.from(bytes as string))], "eof");
  const result = await gateStream(source, { protocol: name, clock: new ManualClock(), ...options });
  if (result.status === "released") return { released: true };
  const { status, code, message } = result.error;
  return { status, code, message };
}

const sse = (...values: readonly object[]): string =>
  values.map((value) => `data: ${JSON.stringify(value)}\n\n`).join("");
const lines = (...values: readonly object[]): string => values.map((value) => `${JSON.stringify(value)}\n`).join("");
const candidate = (fields: object, more: object = {}): object => ({ candidates: [{ index: 0, ...fields }], ...more });
const converse = (...events: readonly (readonly [string, object])[]): Buffer =>
  Buffer.concat(events.map(([type, value]) => awsEvent(type, value)));
const released = { released: true };

describe("Gemini", () => {
  it.each<readonly [string, string, object]>([
    [
      "a call that is none",
      sse(candidate({ finishReason: "MALFORMED_FUNCTION_CALL" })),
      { status: 502, code: "MALFORMED_FUNCTION_CALL" },
    ],
    [
      "the same with an empty part",
      sse(candidate({ content: { parts: [{ text: "" }] }, finishReason: "MALFORMED_FUNCTION_CALL" })),
      { status: 502 },
    ],
    ["an empty stop", sse(candidate({ finishReason: "STOP" })), { status: 502, code: "upstream_empty_completion" }],
    [
      "an empty stop whose thoughts were billed",
      sse(candidate({ finishReason: "STOP" }, { usageMetadata: { thoughtsTokenCount: 9 } })),
      released,
    ],
    [
      "usage after an empty stop",
      sse(candidate({ finishReason: "STOP" }), { usageMetadata: { candidatesTokenCount: 4 } }),
      released,
    ],
    [
      "usage without any finish reason",
      sse({ usageMetadata: { candidatesTokenCount: 4 } }),
      { status: 502, code: "upstream_truncated_stream" },
    ],
    [
      "an enum that is not set",
      sse(candidate({ finishReason: "FINISH_REASON_UNSPECIFIED" })),
      { status: 502, code: "upstream_truncated_stream" },
    ],
    ["an outcome", sse(candidate({ finishReason: "SAFETY" })), released],
    [
      "an error in an array after an empty element",
      JSON.stringify([{ candidates: [] }, { error: { code: 503, status: "UNAVAILABLE", message: "x" } }]),
      { status: 503 },
    ],
    ["an array that is empty", "[]", { status: 502, code: "upstream_invalid_body" }],
    [
      "an error without a number",
      sse({ error: { status: "CANCELLED", code: 499, message: "x" } }),
      { status: 502, code: "CANCELLED" },
    ],
    ["HTML", "<!doctype html>", { status: 502, code: "upstream_invalid_body" }],
  ])("%s", async (_name, wire, expected) => {
    expect(await judged("gemini", wire)).toMatchObject(expected);
  });

  it("words errors as Google does", () => {
    const failure: Failure = {
      kind: "in-band",
      status: 429,
      code: "RESOURCE_EXHAUSTED",
      message: "Slow",
      retryable: true,
    };
    expect(JSON.parse(protocol("gemini").errorBody(failure, "r"))).toEqual({
      error: { code: 429, message: "Slow", status: "RESOURCE_EXHAUSTED" },
    });
    expect(JSON.parse(protocol("gemini").errorBody(networkFailure(undefined, true), "r"))).toEqual({
      error: {
        code: 502,
        message: "The connection to the provider broke",
        status: "UNAVAILABLE",
        details: [{ "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: "upstream_error" }],
      },
    });
  });
});

describe("Interactions", () => {
  const ended = (interaction: object): string => sse({ event_type: "interaction.completed", interaction });

  it.each<readonly [string, string, object]>([
    [
      "nothing, not billed",
      ended({ status: "completed", usage: { total_output_tokens: 0 } }),
      { status: 502, code: "upstream_empty_completion" },
    ],
    [
      "nothing, billed",
      ended({ status: "completed", usage: { total_output_tokens: 0, total_thought_tokens: 3 } }),
      released,
    ],
    ["an outcome", ended({ status: "incomplete" }), released],
    [
      "a failure with its reason",
      ended({ status: "failed", error: { code: "rate_limit_exceeded", message: "Slow" } }),
      { status: 429, message: "Slow" },
    ],
    ["a failure without", ended({ status: "failed" }), { status: 502 }],
    ["the sentinel alone", "event: done\ndata: [DONE]\n\n", { status: 502, code: "upstream_empty_completion" }],
    [
      "what the user said, repeated",
      sse({ event_type: "step.start", step: { type: "user_input", content: [{ type: "text", text: "Hi" }] } }),
      { code: "upstream_truncated_stream" },
    ],
    [
      "a range",
      sse({ event_type: "error", error: { code: "out_of_range", message: "x" } }),
      { status: 416, code: "out_of_range" },
    ],
  ])("%s", async (_name, wire, expected) => {
    expect(await judged("gemini-interactions", wire)).toMatchObject(expected);
  });

  it("words errors in its own way", () => {
    const { errorBody, errorEvent } = protocol("gemini-interactions");
    const failure = networkFailure(undefined, true);
    const error = { code: "upstream_error", message: "The connection to the provider broke" };
    expect(JSON.parse(errorBody(failure, "r"))).toEqual({ error });
    const event = Buffer.from(errorEvent({ failure, sequenceNumber: undefined, responseId: undefined })).toString();
    expect(event).toBe(`\n\nevent: error\ndata: ${JSON.stringify({ event_type: "error", error })}\n\n`);
  });
});

describe("Bedrock", () => {
  const stop = (reason: string): readonly [string, object] => ["messageStop", { stopReason: reason }];
  const usage = (outputTokens: number): readonly [string, object] => ["metadata", { usage: { outputTokens } }];

  it.each<readonly [string, Uint8Array, object]>([
    [
      "an empty answer, not billed",
      converse(stop("end_turn"), usage(0)),
      { status: 502, code: "upstream_empty_completion" },
    ],
    ["an empty answer, billed", converse(stop("end_turn"), usage(3)), released],
    ["an empty answer without usage", converse(stop("end_turn")), { status: 502, code: "upstream_empty_completion" }],
    ["usage alone", converse(usage(3)), { status: 502, code: "upstream_empty_completion" }],
    ["an outcome", converse(stop("guardrail_intervened")), released],
    [
      "a timeout of the model",
      awsException("modelTimeoutException", { message: "x" }),
      { status: 408, code: "modelTimeoutException" },
    ],
    [
      "an error of the model",
      awsException("modelStreamErrorException", { originalStatusCode: 400, message: "x" }),
      { status: 424 },
    ],
    [
      "an exception to come",
      awsException("somethingNewException", { message: "x" }),
      { status: 502, code: "somethingNewException" },
    ],
    [
      "an error that the model names",
      awsError("InternalServerException", "x"),
      { status: 500, code: "InternalServerException" },
    ],
    [
      "an error as text",
      Buffer.from('{"__type":"com.amazonaws.bedrock#ThrottlingException","message":"x"}'),
      { status: 429, code: "ThrottlingException" },
    ],
    ["HTML", Buffer.from("<html>"), { status: 502, code: "upstream_invalid_body" }],
    ["no event at all", Buffer.alloc(0), { status: 502, code: "upstream_empty_stream" }],
  ])("converse: %s", async (_name, wire, expected) => {
    expect(await judged("bedrock-converse", wire)).toMatchObject(expected);
  });

  it.each<readonly [string, Uint8Array, object]>([
    [
      "an overload inside a chunk",
      awsChunk({ type: "error", error: { type: "overloaded_error", message: "busy" } }),
      { status: 503, message: "busy" },
    ],
    ["an error of another model inside a chunk", awsChunk({ error: { code: 429, message: "x" } }), { status: 429 }],
    [
      "a chunk that is no base64",
      awsEvent("chunk", { bytes: "%%%" }),
      { status: 502, code: "upstream_malformed_event" },
    ],
    [
      "a chunk that is no JSON",
      awsEvent("chunk", { bytes: Buffer.from("{").toString("base64") }),
      { status: 502, code: "upstream_malformed_event" },
    ],
    ["a chunk that is empty", awsEvent("chunk", {}), { status: 502, code: "upstream_truncated_stream" }],
    [
      "another model's empty answer",
      awsChunk({ generation: "", stop_reason: "stop", "amazon-bedrock-invocationMetrics": { outputTokenCount: 0 } }),
      { code: "upstream_empty_completion" },
    ],
    [
      "another model's outcome",
      awsChunk({ outputText: "", completionReason: "CONTENT_FILTERED", "amazon-bedrock-invocationMetrics": {} }),
      released,
    ],
  ])("invoke: %s", async (_name, wire, expected) => {
    expect(await judged("bedrock-invoke", wire)).toMatchObject(expected);
  });

  it("fails a stream whose checksum is wrong, while the connection is still open", async () => {
    const wire = Uint8Array.from(converse(["contentBlockDelta", { delta: { text: "Hi" } }]));
    wire[wire.length - 1] = wire[wire.length - 1] ^ 1;
    const result = await gateStream(new CaseSource([wire], "open"), { protocol: "bedrock-converse" });
    expect(result).toMatchObject({ status: "rejected", error: { status: 502, code: "upstream_malformed_event" } });
  });

  it("words errors as AWS does", () => {
    const { errorBody, errorHeaders } = protocol("bedrock-converse");
    const failure: Failure = {
      kind: "in-band",
      status: 429,
      code: "throttlingException",
      message: "Slow",
      retryable: true,
    };
    expect(JSON.parse(errorBody(failure, "r"))).toEqual({ message: "Slow" });
    expect(errorHeaders?.(failure)).toEqual({ "x-amzn-errortype": "ThrottlingException" });
    expect(errorHeaders?.({ ...failure, status: 400, code: "invalid_request" })).toEqual({
      "x-amzn-errortype": "ValidationException",
    });
    expect(errorHeaders?.({ ...failure, status: 502, code: "upstream_auth_error" })).toEqual({
      "x-amzn-errortype": "InternalServerException",
    });
  });

  it("tells a broken stream by an exception in its own framing", () => {
    const bytes = protocol("bedrock-invoke").errorEvent({
      failure: networkFailure(undefined, true),
      sequenceNumber: undefined,
      responseId: undefined,
    });
    expect(createAwsDecoder().push(bytes)).toMatchObject([
      {
        event: "error",
        data: '{"error":{"code":"modelStreamErrorException","message":"The connection to the provider broke"}}',
      },
    ]);
  });
});

describe("Ollama", () => {
  it.each<readonly [string, string, object]>([
    [
      "an empty answer, not billed",
      lines({ done: true, done_reason: "stop", eval_count: 0 }),
      { status: 502, code: "upstream_empty_completion" },
    ],
    ["an empty answer, billed", lines({ done: true, done_reason: "stop", eval_count: 3 }), released],
    [
      "an empty answer without a reason",
      lines({ done: true, eval_count: 3 }),
      { status: 502, code: "upstream_empty_completion" },
    ],
    [
      "an error on a line without an end",
      '{"error":"model runner has unexpectedly stopped"}',
      { status: 502, message: "model runner has unexpectedly stopped" },
    ],
    [
      "an error printed over several lines",
      JSON.stringify({ error: { code: 429, message: "x" } }, null, 2),
      { status: 429 },
    ],
    ["an error object", lines({ error: { code: 429, message: "x" } }), { status: 429 }],
    ["lines that are no JSON", "hello\nworld\n", { status: 502, code: "upstream_malformed_event" }],
    ["HTML", "<html>", { status: 502, code: "upstream_invalid_body" }],
  ])("%s", async (_name, wire, expected) => {
    expect(await judged("ollama", wire)).toMatchObject(expected);
  });

  it("words errors in its own way", () => {
    const { errorBody, errorEvent } = protocol("ollama");
    const failure = networkFailure(undefined, true);
    expect(errorBody(failure, "r")).toBe('{"error":"The connection to the provider broke"}');
    const event = Buffer.from(errorEvent({ failure, sequenceNumber: undefined, responseId: undefined })).toString();
    expect(event).toBe('\n{"error":"The connection to the provider broke"}\n');
  });
});
