/** Which API a captured answer is of, told by its content. */

import { createAwsDecoder } from "../gate/aws-frames.js";
import { createNdjsonDecoder, createStreamDecoder } from "../gate/frames.js";
import type { Frame } from "../gate/frame.js";
import { isObject, stringAt, type JsonObject } from "../gate/json-value.js";
import type { ProtocolName } from "../gate/protocols/protocol.js";

/** Bytes looked at: the first events tell. */
const maxBytes = 1_048_576;

const anthropicTypes = /^(?:message_start|message_delta|message_stop|content_block_\w+|message)$/;
const converseEvents = /^(?:messageStart|messageStop|contentBlock\w+|metadata)$/;

/** Undefined: nothing in it is typical of one API. */
export function guessProtocol(body: Uint8Array, contentType: string): ProtocolName | undefined {
  const bytes = body.subarray(0, maxBytes);
  if (bytes[0] === 0 || contentType.includes("vnd.amazon.eventstream")) return guessAws(bytes);
  // A body of lines is JSON from its first byte on; so is an array.
  const decoder = contentType.includes("ndjson") ? createNdjsonDecoder() : createStreamDecoder();
  const frames = [...decoder.push(bytes), ...decoder.end()];
  for (const frame of frames) {
    const found = guessFrame(frame);
    if (found !== undefined) return found;
  }
  return undefined;
}

function guessAws(bytes: Uint8Array): ProtocolName {
  const names = createAwsDecoder()
    .push(bytes)
    .map((frame) => (frame.kind === "event" ? frame.event : ""));
  return names.some((name) => converseEvents.test(name)) ? "bedrock-converse" : "bedrock-invoke";
}

function guessFrame(frame: Frame): ProtocolName | undefined {
  if (frame.kind === "comment" || frame.kind === "foreign") return undefined;
  let value: unknown;
  try {
    value = JSON.parse(frame.data);
  } catch {
    return undefined;
  }
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  return values
    .filter(isObject)
    .map(guessValue)
    .find((name) => name !== undefined);
}

function guessValue(value: JsonObject): ProtocolName | undefined {
  const type = stringAt(value, "type") ?? "";
  const object = stringAt(value, "object");
  if (type.startsWith("response.") || object === "response") return "openai-responses";
  if (anthropicTypes.test(type)) return "anthropic-messages";
  if (stringAt(value, "event_type") !== undefined || object === "interaction") return "gemini-interactions";
  if ("candidates" in value || "promptFeedback" in value || "usageMetadata" in value) return "gemini";
  if ("choices" in value) return "openai-chat";
  if (typeof value["done"] === "boolean") return "ollama";
  return type === "error" && isObject(value["error"]) && "request_id" in value ? "anthropic-messages" : undefined;
}
