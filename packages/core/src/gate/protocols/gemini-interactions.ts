/**
 * Gemini Interactions. Each event names its type in `event_type`; the SSE event name repeats it.
 * https://ai.google.dev/gemini-api/docs/streaming
 */

import type { Failure } from "../../errors.js";
import { createStreamDecoder } from "../frames.js";
import { failureFromError, findInBandError } from "../in-band-error.js";
import { hasContent, isObject, numberAt, objectAt, stringAt, type JsonObject } from "../json-value.js";
import { completeOutput, neutral, output, type Verdict } from "../verdict.js";
import { encodeSse, type GateProtocol, type ParsedFrame } from "./protocol.js";

const traits = {};

/** Any field besides the type, empty strings aside: a text, a signature, a call with empty arguments. */
function deltaHolds(delta: JsonObject): boolean {
  return Object.entries(delta).some(([key, value]) => key !== "type" && hasContent(value));
}

/** A step as it is opened. That of a tool says by its type that the tool is at work, or has been. */
function stepHolds(step: JsonObject): boolean {
  const type = stringAt(step, "type") ?? "";
  // What the user said is no output of the model.
  if (type === "user_input") return false;
  return type.endsWith("_call") || type.endsWith("_result") || hasContent(step);
}

function ended(interaction: JsonObject): Verdict {
  const status = stringAt(interaction, "status") ?? "completed";
  if (status === "failed")
    return { kind: "failure", failure: failureFromError(interaction["error"] ?? {}, interaction, traits) };
  if (hasContent([interaction["steps"], interaction["outputs"]])) return completeOutput;
  const usage = objectAt(interaction, "usage");
  const answer = numberAt(usage, "total_output_tokens");
  const thoughts = numberAt(usage, "total_thought_tokens");
  const outputTokens = answer === undefined && thoughts === undefined ? undefined : (answer ?? 0) + (thoughts ?? 0);
  return { kind: "terminal", reason: status, outputTokens, final: true, complete: true };
}

/** A whole interaction: the body of an answer that is not streamed. */
function wholeInteraction(value: JsonObject): Verdict {
  const status = stringAt(value, "status");
  if (status === undefined || status === "in_progress" || status === "queued") {
    return hasContent([value["steps"], value["outputs"]]) ? output : neutral;
  }
  return ended(value);
}

export function classifyInteractions(frame: ParsedFrame): Verdict {
  const failure = findInBandError(frame, traits);
  if (failure !== undefined) return failure;
  if (frame.data.trim() === "[DONE]") return { kind: "terminal", final: true, complete: false };
  const { value } = frame;
  if (!isObject(value)) return neutral;
  switch (stringAt(value, "event_type") ?? frame.event) {
    case "step.start":
      return stepHolds(objectAt(value, "step")) ? output : neutral;
    case "content.start":
      return stepHolds(objectAt(value, "content")) ? output : neutral;
    case "step.delta":
    case "content.delta":
      return deltaHolds(objectAt(value, "delta")) ? output : neutral;
    // The second is how the API was first published.
    case "interaction.completed":
    case "interaction.complete":
      return ended(objectAt(value, "interaction"));
    case "":
      return frame.source === "json" && isObject(value) ? wholeInteraction(value) : neutral;
    default:
      return neutral;
  }
}

/** Its codes are snake-case names, unlike those of the rest of Google's APIs. https://ai.google.dev/gemini-api/docs/api-errors */
function interactionsError({ code, message }: Failure): object {
  return { code, message };
}

export const geminiInteractions: GateProtocol = {
  name: "gemini-interactions",
  createDecoder: createStreamDecoder,
  framing: "blank-line",
  classify: classifyInteractions,
  alwaysReportsUsage: true,
  watchMarkers: [".compl", "rror"],
  contentType: "text/event-stream; charset=utf-8",
  onMidStreamFailure: "event",
  errorBody: (failure) => JSON.stringify({ error: interactionsError(failure) }),
  errorEvent: ({ failure }) => encodeSse("error", { event_type: "error", error: interactionsError(failure) }),
};
