/**
 * Anthropic Messages, also as served by Vertex, Bedrock's own SSE endpoint and compatible servers.
 * https://platform.claude.com/docs/en/build-with-claude/streaming
 */

import type { Failure } from "../../errors.js";
import { createStreamDecoder } from "../frames.js";
import { findInBandError } from "../in-band-error.js";
import { hasContent, isObject, numberAt, objectAt, stringAt } from "../json-value.js";
import { completeOutput, keepalive, neutral, output, type Verdict } from "../verdict.js";
import { encodeSse, type GateProtocol, type ParsedFrame } from "./protocol.js";

const traits = {};

/** Delta fields that hold what the model generated, by delta type: `text_delta.text`, `input_json_delta.partial_json`, … */
const deltaFields = ["text", "thinking", "signature", "partial_json", "citation", "content", "data"];

/** Blocks that are output at their start: a tool call, or a result that the provider's own tool has made. */
function startsOutput(type: string): boolean {
  return (
    type.endsWith("tool_use") ||
    type.endsWith("tool_result") ||
    type === "redacted_thinking" ||
    type === "container_upload"
  );
}

export function classifyAnthropic(frame: ParsedFrame): Verdict {
  const failure = findInBandError(frame, traits);
  if (failure !== undefined) return failure;
  const { value } = frame;
  if (!isObject(value)) return neutral;
  switch (stringAt(value, "type") ?? frame.event) {
    case "ping":
      return keepalive;
    case "content_block_start": {
      const block = objectAt(value, "content_block");
      const text = hasContent([block["text"], block["thinking"], block["signature"], block["content"]]);
      return text || startsOutput(stringAt(block, "type") ?? "") ? output : neutral;
    }
    case "content_block_delta": {
      const delta = objectAt(value, "delta");
      return deltaFields.some((field) => hasContent(delta[field])) ? output : neutral;
    }
    case "message_delta": {
      const reason = stringAt(objectAt(value, "delta"), "stop_reason");
      const outputTokens = numberAt(objectAt(value, "usage"), "output_tokens");
      return { kind: "terminal", reason, outputTokens, final: false, complete: false };
    }
    case "message_stop":
      return { kind: "terminal", final: true, complete: true };
    case "message":
      return frame.source === "json" ? completeOutput : neutral;
    default:
      return neutral;
  }
}

/** The type of an error that is not the provider's own. https://platform.claude.com/docs/en/api/errors */
const types: ReadonlyMap<number, string> = new Map([
  [400, "invalid_request_error"],
  [401, "authentication_error"],
  [402, "billing_error"],
  [403, "permission_error"],
  [404, "not_found_error"],
  [408, "timeout_error"],
  [409, "conflict_error"],
  [413, "request_too_large"],
  [429, "rate_limit_error"],
  [503, "overloaded_error"],
  [504, "timeout_error"],
]);

function errorType(failure: Failure): string {
  return failure.type ?? types.get(failure.status) ?? (failure.status >= 500 ? "api_error" : "invalid_request_error");
}

export const anthropicMessages: GateProtocol = {
  name: "anthropic-messages",
  createDecoder: createStreamDecoder,
  framing: "blank-line",
  classify: classifyAnthropic,
  alwaysReportsUsage: true,
  // `message_stop`, and `message_delta`, which holds the usage.
  watchMarkers: ["message_", "rror"],
  contentType: "text/event-stream; charset=utf-8",
  // Claude Code retries a connection that breaks, but takes an error event for the end.
  onMidStreamFailure: "abort",
  errorBody: (failure, requestId) =>
    JSON.stringify({
      type: "error",
      error: { type: errorType(failure), message: failure.message },
      request_id: requestId,
    }),
  errorEvent: ({ failure }) =>
    encodeSse("error", { type: "error", error: { type: errorType(failure), message: failure.message } }),
};
