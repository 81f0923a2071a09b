/** Ollama's own API: one JSON object a line. https://github.com/ollama/ollama/blob/main/docs/api.md */

import { createNdjsonDecoder } from "../frames.js";
import { findInBandError } from "../in-band-error.js";
import { arrayAt, hasContent, isObject, numberAt, objectAt, stringAt } from "../json-value.js";
import { completeOutput, neutral, output, type Verdict } from "../verdict.js";
import type { GateProtocol, ParsedFrame } from "./protocol.js";

const traits = {};

export function classifyOllama(frame: ParsedFrame): Verdict {
  const failure = findInBandError(frame, traits);
  if (failure !== undefined) return failure;
  const { value } = frame;
  if (!isObject(value)) return neutral;
  const message = objectAt(value, "message");
  const done = value["done"] === true;
  // One line of a stream that was cut short, not a whole answer.
  if (frame.source === "json" && !done) return neutral;
  const { content, thinking, images } = message;
  // `response` is the field of `/api/generate`, which some servers answer with.
  if (hasContent([content, thinking, images, value["response"]]) || arrayAt(message, "tool_calls").length > 0) {
    return done ? completeOutput : output;
  }
  if (!done) return neutral;
  return {
    kind: "terminal",
    reason: stringAt(value, "done_reason"),
    outputTokens: numberAt(value, "eval_count"),
    final: true,
    complete: true,
  };
}

const encoder = new TextEncoder();

export const ollama: GateProtocol = {
  name: "ollama",
  createDecoder: createNdjsonDecoder,
  framing: "line",
  classify: classifyOllama,
  alwaysReportsUsage: true,
  watchMarkers: ['"done":true', '"done": true', "rror"],
  contentType: "application/x-ndjson",
  onMidStreamFailure: "event",
  errorBody: ({ message }) => JSON.stringify({ error: message }),
  // The line end before it ends whatever line was cut short.
  errorEvent: ({ failure: { message } }) => encoder.encode(`\n${JSON.stringify({ error: message })}\n`),
};
