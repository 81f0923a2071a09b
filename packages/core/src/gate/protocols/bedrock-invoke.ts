/**
 * Bedrock `invoke-with-response-stream`: in the AWS event stream framing, chunks that hold one event of the model's own
 * API each, in base64. https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModelWithResponseStream.html
 */

import { brokenFraming, createAwsDecoder } from "../aws-frames.js";
import { malformedEvent } from "../failures.js";
import type { Frame, FrameDecoder } from "../frame.js";
import { findInBandError } from "../in-band-error.js";
import { arrayAt, hasContent, isObject, numberAt, objectAt, stringAt, type JsonObject } from "../json-value.js";
import { completeOutput, neutral, output, type Verdict } from "../verdict.js";
import { classifyAnthropic } from "./anthropic-messages.js";
import { awsErrorBody, awsErrorHeaders, awsExceptionEvent } from "./aws-error.js";
import { classifyConverseEvent } from "./bedrock-converse.js";
import { classifyChat } from "./openai-chat.js";
import type { GateProtocol, ParsedFrame } from "./protocol.js";

const traits = {};
const utf8 = new TextDecoder();

/** The frames are those of the AWS framing, but for the chunks: of these the event inside is the data. */
function createInvokeDecoder(): FrameDecoder {
  const decoder = createAwsDecoder();
  return {
    push: (chunk) => decoder.push(chunk).map(unwrapped),
    end: () => decoder.end().map(unwrapped),
    get pendingBytes() {
      return decoder.pendingBytes;
    },
  };
}

function unwrapped(frame: Frame): Frame {
  if (frame.kind !== "event" || frame.event !== "chunk") return frame;
  const bytes = base64In(frame.data);
  return bytes === undefined ? frame : { ...frame, data: decoded(bytes) };
}

function base64In(data: string): string | undefined {
  try {
    return stringAt(JSON.parse(data), "bytes");
  } catch {
    return undefined;
  }
}

/** What is no base64 stays as it is: no JSON either, and judged as such. */
function decoded(bytes: string): string {
  try {
    return utf8.decode(Uint8Array.from(atob(bytes), (character) => character.charCodeAt(0)));
  } catch {
    return bytes;
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
  if (frame.event !== "chunk") return neutral;
  const verdict = classifyModelEvent(frame, value);
  return isObject(value[metrics]) && stringAt(value, "type") === undefined ? classifyLast(value, verdict) : verdict;
}

export const bedrockInvoke: GateProtocol = {
  name: "bedrock-invoke",
  createDecoder: createInvokeDecoder,
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
