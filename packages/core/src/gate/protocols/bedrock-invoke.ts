/**
 * Bedrock `invoke-with-response-stream`: in the AWS event stream framing, chunks that hold one event of the model's own
 * API each, in base64. https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModelWithResponseStream.html
 */

import { brokenFraming, createAwsDecoder } from "../aws-frames.js";
import { malformedEvent } from "../failures.js";
import { findInBandError } from "../in-band-error.js";
import { arrayAt, hasContent, isObject, numberAt, objectAt, stringAt, type JsonObject } from "../json-value.js";
import { completeOutput, malformed, neutral, output, type Verdict } from "../verdict.js";
import { classifyAnthropic } from "./anthropic-messages.js";
import { awsErrorBody, awsErrorHeaders, awsExceptionEvent } from "./aws-error.js";
import { classifyConverseEvent } from "./bedrock-converse.js";
import { classifyChat } from "./openai-chat.js";
import type { GateProtocol, ParsedFrame } from "./protocol.js";

const traits = {};
const decoder = new TextDecoder();

/** The event inside a chunk; undefined where there is none. */
function inner(bytes: string): ParsedFrame | undefined {
  try {
    const data = decoder.decode(Uint8Array.from(atob(bytes), (character) => character.charCodeAt(0)));
    return { event: "", data, value: JSON.parse(data) as unknown, source: "event" };
  } catch {
    return undefined;
  }
}

/** Bedrock adds it to the last event of every model's stream. */
const metrics = "amazon-bedrock-invocationMetrics";

/** Where the models that have no events put their text: Titan, Llama, older Claude, Cohere, Mistral. */
const textFields = ["outputText", "generation", "completion", "text"];
const textLists = ["outputs", "generations", "choices"];

function holdsText(value: JsonObject): boolean {
  return (
    hasContent(textFields.map((key) => value[key])) ||
    textLists.some((key) => arrayAt(value, key).some((part) => hasContent(isObject(part) && part["text"])))
  );
}

function classifyModelEvent(frame: ParsedFrame, value: JsonObject): Verdict {
  if (stringAt(value, "type") !== undefined) return classifyAnthropic(frame);
  if (holdsText(value)) return output;
  if (arrayAt(value, "choices").length > 0) return classifyChat(frame);
  const [name = "", ...others] = Object.keys(value).filter((key) => key !== metrics);
  return others.length === 0 ? classifyConverseEvent(name, objectAt(value, name)) : neutral;
}

/** The last event of a model that is not Anthropic's ends the stream, whatever else it says. */
function classifyLast(value: JsonObject, verdict: Verdict): Verdict {
  if (verdict.kind === "failure") return verdict;
  if (verdict.kind === "output") return completeOutput;
  const reason =
    verdict.kind === "terminal"
      ? verdict.reason
      : (stringAt(value, "completionReason") ?? stringAt(value, "stop_reason"));
  return {
    kind: "terminal",
    reason,
    outputTokens: numberAt(value[metrics], "outputTokenCount"),
    final: true,
    complete: true,
  };
}

export function classifyInvoke(frame: ParsedFrame): Verdict {
  if (frame.event === brokenFraming) return { kind: "failure", failure: malformedEvent() };
  const failure = findInBandError(frame, traits);
  if (failure !== undefined) return failure;
  const { value } = frame;
  if (!isObject(value)) return neutral;
  if (frame.source === "json") return classifyAnthropic(frame);
  const bytes = stringAt(value, "bytes");
  if (bytes === undefined) return neutral;
  const chunk = inner(bytes);
  if (chunk === undefined || !isObject(chunk.value)) return malformed;
  const found = findInBandError(chunk, traits);
  if (found !== undefined) return found;
  const verdict = classifyModelEvent(chunk, chunk.value);
  return isObject(chunk.value[metrics]) && stringAt(chunk.value, "type") === undefined
    ? classifyLast(chunk.value, verdict)
    : verdict;
}

export const bedrockInvoke: GateProtocol = {
  name: "bedrock-invoke",
  createDecoder: createAwsDecoder,
  framing: "decoded",
  classify: classifyInvoke,
  alwaysReportsUsage: true,
  watchMarkers: [],
  contentType: "application/vnd.amazon.eventstream",
  onMidStreamFailure: "event",
  errorBody: awsErrorBody,
  errorHeaders: awsErrorHeaders,
  errorEvent: ({ failure }) => awsExceptionEvent(failure),
};
