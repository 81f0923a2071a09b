/**
 * OpenAI Chat Completions, as served by OpenAI, Azure and everything compatible.
 * https://platform.openai.com/docs/api-reference/chat-streaming
 */

import { createStreamDecoder } from "../frames.js";
import { finishReasonFailure } from "../failures.js";
import { findInBandError } from "../in-band-error.js";
import { arrayAt, hasContent, isObject, numberAt, objectAt, stringAt, type JsonObject } from "../json-value.js";
import { completeOutput, neutral, output, type Verdict } from "../verdict.js";
import { openaiErrorBody } from "./openai-error.js";
import { encodeSse, type GateProtocol, type ParsedFrame } from "./protocol.js";

const traits = { flatErrors: true };

/** Whether one of the fields holds anything in which servers send what the model generated. */
function hasOutput(delta: JsonObject): boolean {
  // By their names, one by one: a list of names costs several times as much.
  return (
    hasContent(delta["content"]) ||
    hasContent(delta["reasoning"]) ||
    hasContent(delta["reasoning_content"]) ||
    hasContent(delta["reasoning_text"]) ||
    hasContent(delta["reasoning_details"]) ||
    hasContent(delta["refusal"]) ||
    hasContent(delta["audio"]) ||
    hasContent(delta["images"]) ||
    hasContent(delta["thinking"])
  );
}

/** Finish reasons by which a server says that it failed: OpenRouter, DeepSeek. */
const failedReasons = new Set(["error", "insufficient_system_resource"]);
/** The same where only the field with the upstream's own reason tells. */
const failedNativeReasons = new Set(["error", "network_error"]);

function isOutput(choice: unknown): boolean {
  if (!isObject(choice)) return false;
  const { message, delta } = choice;
  // A `message` stands only in an answer that is not streamed.
  if (isObject(message)) return true;
  if (!isObject(delta)) return false;
  const { tool_calls: calls } = delta;
  return (Array.isArray(calls) && calls.length > 0) || isObject(delta["function_call"]) || hasOutput(delta);
}

/** Cohere's own events have one delta and no choices: `{"type": "content-delta", "delta": {"message": {…}}}`. */
function choicesOf(value: JsonObject): readonly unknown[] {
  const { choices, delta } = value;
  if (choices !== undefined || !isObject(delta)) return arrayAt(value, "choices");
  const { message, finish_reason } = delta;
  return [{ delta: { content: message }, finish_reason }];
}

/** The reason that says most: an outcome before a plain stop. Older Ollama sends an empty string on every chunk. */
function finishReason(choices: readonly unknown[]): string | undefined {
  let first: string | undefined;
  for (const choice of choices) {
    const reason = stringAt(choice, "finish_reason");
    if (reason !== undefined && reason !== "stop") return reason;
    first ??= reason;
  }
  return first;
}

function failedReason(choices: readonly unknown[]): string | undefined {
  for (const choice of choices) {
    const native = stringAt(choice, "native_finish_reason");
    const reason = stringAt(choice, "finish_reason");
    if (native !== undefined && native !== "error" && failedNativeReasons.has(native)) return native;
    if (reason !== undefined && failedReasons.has(reason)) return reason;
    if (native === "error") return native;
  }
  return undefined;
}

export function classifyChat(frame: ParsedFrame): Verdict {
  const failure = findInBandError(frame, traits);
  if (failure !== undefined) return failure;
  if (frame.data.trim() === "[DONE]") return { kind: "terminal", final: true, complete: true };
  const { value } = frame;
  if (!isObject(value)) return neutral;
  const choices = choicesOf(value);
  const failed = failedReason(choices);
  if (failed !== undefined) return { kind: "failure", failure: finishReasonFailure(failed) };
  const reason = finishReason(choices);
  if (choices.some(isOutput)) return reason === undefined ? output : completeOutput;
  const outputTokens = numberAt(objectAt(value, "usage"), "completion_tokens");
  if (reason === undefined && outputTokens === undefined) return neutral;
  return { kind: "terminal", reason, outputTokens, final: false, complete: reason !== undefined };
}

export const openaiChat: GateProtocol = {
  name: "openai-chat",
  createDecoder: createStreamDecoder,
  framing: "blank-line",
  classify: classifyChat,
  alwaysReportsUsage: false,
  // The finish reason by the end of its name, of which the search skips most: how it begins, every other name does. A flat
  // error without the word goes by after release: its stream ends as one that was cut short.
  watchMarkers: ["rror", "DONE]", 'ish_reason":"', 'ish_reason": "'],
  contentType: "text/event-stream; charset=utf-8",
  onMidStreamFailure: "event",
  errorBody: openaiErrorBody,
  errorEvent: ({ failure }) => encodeSse(undefined, JSON.parse(openaiErrorBody(failure)) as unknown),
};
