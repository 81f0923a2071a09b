/** What a protocol file answers. A provider with a new shape is added by writing one of these. */

import type { Failure } from "../../errors.js";
import type { FrameDecoder } from "../frame.js";
import type { Verdict } from "../verdict.js";

/** The names used in the configuration. */
export type ProtocolName =
  | "anthropic-messages"
  | "openai-responses"
  | "openai-chat"
  | "gemini"
  | "gemini-interactions"
  | "bedrock-invoke"
  | "bedrock-converse"
  | "ollama";

export interface ParsedFrame {
  /** SSE event name; empty where there is none. `error` for the value of an SSE field of that name. */
  readonly event: string;
  readonly data: string;
  /** `data` as JSON, or undefined when it is no JSON. */
  readonly value: unknown;
  /**
   * `event`: a frame of the stream. `json`: a whole body (or an element of an array) that is not in the framing.
   * `stray`: outside the framing; only a failure counts.
   */
  readonly source: "event" | "json" | "stray";
}

/** An error body for a client of this protocol, as its official SDK parses it. Always `application/json`. */
export type ErrorBody = (failure: Failure, requestId: string) => string;

/** What the watch after release knows when it must tell the client that the stream broke. */
export interface MidStreamContext {
  readonly failure: Failure;
  /** The highest `sequence_number` seen, for protocols that number their events. */
  readonly sequenceNumber: number | undefined;
  /** Response id, where one was seen. */
  readonly responseId: string | undefined;
}

export interface GateProtocol {
  readonly name: string;
  createDecoder(): FrameDecoder;
  /**
   * How frames end on the wire, for the watch after release: at a blank line, at a line end, or not by a byte pattern
   * (`decoded`: the decoder goes on reading every byte).
   */
  readonly framing: "blank-line" | "line" | "decoded";
  /** Pure: the same frame has the same verdict, whatever came before. */
  classify(frame: ParsedFrame): Verdict;
  /** A stream may come as the elements of a JSON array. Else JSON is a whole answer or none. */
  readonly streamsJson?: boolean;
  /** Whether a finished stream always reports usage: then absent usage counts as zero output tokens. */
  readonly alwaysReportsUsage: boolean;
  /**
   * Byte strings of which at least one stands in every frame that is terminal or an error. After release a chunk is parsed
   * from the first frame on that holds one. ASCII.
   */
  readonly watchMarkers: readonly string[];
  /** Every event has a `sequence_number`, which an added event must go on counting. */
  readonly numbersEvents?: boolean;
  /** Content type of the stream, for the response head when the provider sent none. */
  readonly contentType: string;
  readonly onMidStreamFailure: "event" | "abort";
  readonly errorBody: ErrorBody;
  /** Response headers that belong to the error body. Lower-case names. Default: none. */
  errorHeaders?(failure: Failure): Readonly<Record<string, string>>;
  /** One event that this protocol's clients take for an error, ready for the wire. */
  errorEvent(context: MidStreamContext): Uint8Array;
}

const encoder = new TextEncoder();

/** One SSE event. The blank line before it ends whatever frame was cut short. */
export function encodeSse(event: string | undefined, data: unknown): Uint8Array {
  const name = event === undefined ? "" : `event: ${event}\n`;
  return encoder.encode(`\n\n${name}data: ${JSON.stringify(data)}\n\n`);
}
