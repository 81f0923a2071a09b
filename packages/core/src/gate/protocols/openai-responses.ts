/**
 * OpenAI Responses, as served by OpenAI, Azure AI Foundry, OpenRouter and compatible servers.
 * https://github.com/openai/openai-openapi (ResponseStreamEvent)
 */

import { createStreamDecoder } from "../frames.js";
import { unexplainedFailure } from "../failures.js";
import { failureFromError, findInBandError, saysNothing } from "../in-band-error.js";
import { arrayAt, hasContent, isObject, numberAt, objectAt, stringAt, type JsonObject } from "../json-value.js";
import {
  completeOutput,
  keepalive,
  lifecycle,
  neutral,
  output,
  type FailureVerdict,
  type Verdict,
} from "../verdict.js";
import { openaiErrorBody } from "./openai-error.js";
import { encodeSse, type GateProtocol, type ParsedFrame } from "./protocol.js";

const traits = { nameInMessage: true };

/** Progress of a tool of the provider that means it is at work: its side effects may have begun. */
const atWork = /_call\.(?:in_progress|searching|generating|interpreting)$/;

function isCall(item: JsonObject): boolean {
  const type = stringAt(item, "type") ?? "";
  return type.endsWith("_call") || type.endsWith("_call_output") || type === "mcp_approval_request";
}

/** An item as it is opened. A reasoning item may carry an encrypted blob from the start: that is no output yet. */
function itemAdded(item: JsonObject): Verdict {
  if (isCall(item)) return output;
  return hasContent([item["content"], item["summary"]]) ? output : neutral;
}

/** An item, part or field as it is closed. */
function done(value: JsonObject): Verdict {
  const item = objectAt(value, "item");
  if (isCall(item)) return output;
  const { content, summary, encrypted_content: encrypted, result } = item;
  const { text, refusal, arguments: args, input, code, transcript, part, diff, command, output: result2 } = value;
  return hasContent([
    content,
    summary,
    encrypted,
    result,
    text,
    refusal,
    args,
    input,
    code,
    transcript,
    part,
    diff,
    command,
    result2,
  ])
    ? output
    : neutral;
}

/** An error that says neither what nor why is none: Microsoft Foundry sends the reason in the next frame. */
function failed(response: JsonObject): FailureVerdict {
  const { error } = response;
  const explained = isObject(error)
    ? hasContent([error["code"], error["message"]]) || typeof error["code"] === "number"
    : hasContent(error);
  if (!explained) return { kind: "failure", failure: unexplainedFailure(), unexplained: true };
  return { kind: "failure", failure: failureFromError(error, response, traits) };
}

function finished(response: JsonObject): Verdict {
  if (arrayAt(response, "output").length > 0) return completeOutput;
  const outputTokens = numberAt(objectAt(response, "usage"), "output_tokens");
  const status = stringAt(response, "status") ?? "completed";
  // Not the bare reason: one that is called like a plain stop would be judged as such.
  const reason =
    status === "completed"
      ? status
      : `${status}:${stringAt(objectAt(response, "incomplete_details"), "reason") ?? "unknown"}`;
  return { kind: "terminal", reason, outputTokens, final: true, complete: true };
}

/** A whole response: the body of an answer that is not streamed. */
function wholeResponse(value: JsonObject): Verdict {
  switch (stringAt(value, "status")) {
    case "failed":
      return failed(value);
    case "queued":
    case "in_progress":
    case undefined:
      return arrayAt(value, "output").length > 0 ? completeOutput : neutral;
    default:
      return finished(value);
  }
}

export function classifyResponses(frame: ParsedFrame): Verdict {
  const error = findInBandError(frame, traits);
  // `error` and `response.failed` are last events of this protocol.
  if (error !== undefined) return { ...error, saysNothing: saysNothing(error.failure), complete: true };
  const verdict = classifyEvent(frame);
  return verdict.kind === "failure" ? { ...verdict, complete: true } : verdict;
}

function classifyEvent(frame: ParsedFrame): Verdict {
  const { value } = frame;
  // OpenAI-compatible endpoints close this stream, too, with the chat sentinel.
  if (frame.data.trim() === "[DONE]") return { kind: "terminal", final: true, complete: false };
  if (!isObject(value)) return neutral;
  if (frame.source === "json" && value["object"] === "response") return wholeResponse(value);
  const type = stringAt(value, "type") ?? frame.event;
  switch (type) {
    case "response.created":
    case "response.in_progress":
    case "response.queued":
      return lifecycle;
    case "response.failed":
      return failed(objectAt(value, "response"));
    case "response.completed":
      return finished({ status: "completed", ...objectAt(value, "response") });
    case "response.incomplete":
      return finished({ ...objectAt(value, "response"), status: "incomplete" });
    case "response.output_item.added":
      return itemAdded(objectAt(value, "item"));
    case "response.content_part.added":
    case "response.reasoning_summary_part.added":
      return hasContent(value["part"]) ? output : neutral;
    case "response.output_text.annotation.added":
    case "response.shell_call_command.added":
    case "response.image_generation_call.partial_image":
      return output;
    case "keepalive":
    case "response.keep_alive":
    case "ping":
      return keepalive;
  }
  if (type.endsWith(".delta")) return hasContent(value["delta"]) ? output : neutral;
  if (type.endsWith(".done")) return done(value);
  return atWork.test(type) ? output : neutral;
}

export const openaiResponses: GateProtocol = {
  name: "openai-responses",
  createDecoder: createStreamDecoder,
  framing: "blank-line",
  classify: classifyResponses,
  alwaysReportsUsage: true,
  watchMarkers: [".compl", ".incom", "rror"],
  contentType: "text/event-stream; charset=utf-8",
  numbersEvents: true,
  onMidStreamFailure: "event",
  errorBody: openaiErrorBody,
  errorEvent: ({ failure, sequenceNumber, responseId }) =>
    encodeSse("response.failed", {
      type: "response.failed",
      sequence_number: (sequenceNumber ?? -1) + 1,
      response: {
        id: responseId ?? "",
        object: "response",
        status: "failed",
        error: { code: failure.code, message: failure.message },
        output: [],
      },
    }),
};
