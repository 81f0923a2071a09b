/**
 * Bedrock `converse-stream`: messages in the AWS event stream framing, named by their event type.
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ConverseStream.html
 */

import { brokenFraming, createAwsDecoder } from "../aws-frames.js";
import { malformedEvent } from "../failures.js";
import { findInBandError } from "../in-band-error.js";
import { hasContent, isObject, numberAt, objectAt, stringAt, type JsonObject } from "../json-value.js";
import { completeOutput, neutral, output, type Verdict } from "../verdict.js";
import { awsErrorBody, awsErrorHeaders, awsExceptionEvent } from "./aws-error.js";
import type { GateProtocol, ParsedFrame } from "./protocol.js";

const traits = {};

/** One event by its name. Amazon's own models send the same ones through `invoke`. */
export function classifyConverseEvent(name: string, value: JsonObject): Verdict {
  switch (name) {
    case "contentBlockStart":
      // A text block is not announced: what is, is a tool call or an object of another kind.
      return Object.values(objectAt(value, "start")).some(isObject) ? output : neutral;
    case "contentBlockDelta":
      return hasContent(value["delta"]) ? output : neutral;
    case "messageStop":
      return { kind: "terminal", reason: stringAt(value, "stopReason"), final: false, complete: true };
    case "metadata":
      return {
        kind: "terminal",
        outputTokens: numberAt(objectAt(value, "usage"), "outputTokens"),
        final: true,
        complete: false,
      };
    default:
      return neutral;
  }
}

export function classifyConverse(frame: ParsedFrame): Verdict {
  if (frame.event === brokenFraming) return { kind: "failure", failure: malformedEvent() };
  const failure = findInBandError(frame, traits);
  if (failure !== undefined) return failure;
  const { value } = frame;
  if (!isObject(value)) return neutral;
  if (frame.source === "json") return isObject(objectAt(value, "output")["message"]) ? completeOutput : neutral;
  return classifyConverseEvent(frame.event, value);
}

export const bedrockConverse: GateProtocol = {
  name: "bedrock-converse",
  createDecoder: createAwsDecoder,
  framing: "decoded",
  classify: classifyConverse,
  alwaysReportsUsage: true,
  watchMarkers: [],
  contentType: "application/vnd.amazon.eventstream",
  onMidStreamFailure: "event",
  errorBody: awsErrorBody,
  errorHeaders: awsErrorHeaders,
  errorEvent: ({ failure }) => awsExceptionEvent(failure),
};
