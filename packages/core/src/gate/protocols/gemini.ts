/**
 * Gemini `streamGenerateContent`, as served by Google AI and Vertex: server-sent events with `alt=sse`, else one JSON
 * array, of which each element is a frame. https://ai.google.dev/api/generate-content
 */

import { createStreamDecoder } from "../frames.js";
import { finishReasonFailure } from "../failures.js";
import { findInBandError } from "../in-band-error.js";
import { arrayAt, isObject, numberAt, objectAt, stringAt } from "../json-value.js";
import { completeOutput, neutral, output, type Verdict } from "../verdict.js";
import { googleError } from "./google-error.js";
import { encodeSse, type GateProtocol, type ParsedFrame } from "./protocol.js";

const traits = {};

/** The model called a function with something that is no call, and that is all it said. */
const failedReason = "MALFORMED_FUNCTION_CALL";

/** Says of a part how to take it, not what it holds. */
const partLabels = new Set(["thought", "thoughtSignature", "partMetadata", "videoMetadata", "mediaResolution"]);

/** Text, or an object: `functionCall`, `inlineData`, `executableCode`, and whatever is added to these. */
function isOutput(part: unknown): boolean {
  if (!isObject(part)) return false;
  return Object.entries(part).some(
    ([key, value]) =>
      !partLabels.has(key) && (key === "text" ? typeof value === "string" && value !== "" : isObject(value)),
  );
}

/** Of the unset enum value of protocol buffers nothing can be told. */
function finishReason(candidate: unknown): string | undefined {
  const reason = stringAt(candidate, "finishReason");
  return reason === "FINISH_REASON_UNSPECIFIED" ? undefined : reason;
}

/** Undefined: the frame reports neither. */
function outputTokens(value: unknown): number | undefined {
  const usage = objectAt(value, "usageMetadata");
  const answer = numberAt(usage, "candidatesTokenCount");
  const thoughts = numberAt(usage, "thoughtsTokenCount");
  return answer === undefined && thoughts === undefined ? undefined : (answer ?? 0) + (thoughts ?? 0);
}

export function classifyGemini(frame: ParsedFrame): Verdict {
  const failure = findInBandError(frame, traits);
  if (failure !== undefined) return failure;
  const { value } = frame;
  if (!isObject(value)) return neutral;
  const candidates = arrayAt(value, "candidates");
  const reasons = candidates.map(finishReason).filter((reason) => reason !== undefined);
  const blocked = stringAt(objectAt(value, "promptFeedback"), "blockReason");
  const complete = reasons.length > 0 || blocked !== undefined;
  if (candidates.some((candidate) => arrayAt(objectAt(candidate, "content"), "parts").some(isOutput))) {
    return complete ? completeOutput : output;
  }
  if (reasons.includes(failedReason)) return { kind: "failure", failure: finishReasonFailure(failedReason) };
  const tokens = outputTokens(value);
  if (!complete && tokens === undefined) return neutral;
  // An outcome says more than a plain stop of another candidate.
  const reason = blocked ?? reasons.find((one) => one !== "STOP") ?? reasons[0];
  return { kind: "terminal", reason, outputTokens: tokens, final: false, complete };
}

export const gemini: GateProtocol = {
  name: "gemini",
  createDecoder: createStreamDecoder,
  framing: "blank-line",
  streamsJson: true,
  classify: classifyGemini,
  alwaysReportsUsage: true,
  watchMarkers: ["hReaso", "kReaso", "rror"],
  contentType: "text/event-stream; charset=utf-8",
  onMidStreamFailure: "event",
  errorBody: (failure) => JSON.stringify(googleError(failure)),
  errorEvent: ({ failure }) => encodeSse(undefined, googleError(failure)),
};
