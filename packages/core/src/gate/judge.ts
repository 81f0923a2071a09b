/** One frame → the machine's input: parses the data and asks the protocol. */

import type { Frame } from "./frame.js";
import type { GateInput } from "./gate.js";
import { stringAt } from "./json-value.js";
import type { GateProtocol, ParsedFrame } from "./protocols/protocol.js";
import { mergeUsage, readUsage, type TokenUsage } from "./usage.js";
import { completeOutput, foreign, malformed, neutral, type Verdict } from "./verdict.js";

/** Longest name of a model that is kept. */
const maxModelLength = 200;

/** Hears of the value of each frame that is decoded. Must not throw. */
export type ValueListener = (value: object) => void;

export class Judge {
  readonly #protocol: GateProtocol;
  readonly #onValue: ValueListener | undefined;
  /** The lines of the event under way were judged one by one. */
  #byLine = false;
  /** The highest `sequence_number` and the response id, for an error event after release. */
  sequenceNumber: number | undefined;
  responseId: string | undefined;
  /** What the frames judged so far said of usage. */
  usage: TokenUsage | undefined;
  /** The model that answers, in the provider's words: the first that a frame names. */
  responseModel: string | undefined;

  constructor(protocol: GateProtocol, onValue?: ValueListener) {
    this.#protocol = protocol;
    this.#onValue = onValue;
  }

  /** Undefined: the frame says nothing (a comment, or an event whose lines were judged already). */
  judge(frame: Frame, trailing: boolean): GateInput | undefined {
    switch (frame.kind) {
      case "comment":
        return undefined;
      case "foreign":
        return { type: "foreign" };
      case "event":
        // By the SSE rules an event without data is none.
        if (frame.data === "" && frame.event !== "error") return undefined;
        if (frame.line === true) {
          this.#byLine = true;
        } else if (this.#byLine) {
          this.#byLine = false;
          return undefined;
        }
        return { type: "frame", verdict: this.#classify(frame.event, frame.data, "event"), trailing };
      case "stray":
        return {
          type: "frame",
          verdict: this.#classify(frame.field === true ? "error" : "", frame.data, "stray"),
          trailing,
        };
      case "json":
        // A whole value is whole without a line end behind it.
        return { type: "frame", verdict: this.#classify("", frame.data, "json"), trailing: false };
    }
  }

  #classify(event: string, data: string, source: ParsedFrame["source"]): Verdict {
    const value = parse(data);
    this.#note(value);
    const verdict = this.#protocol.classify({ event, data, value, source });
    if (source === "json" && this.#protocol.streamsJson !== true) {
      // A whole answer is complete, whether or not it says so.
      if (verdict.kind === "output") return completeOutput;
      if (verdict.kind === "neutral") return foreign;
    }
    if (verdict.kind === "neutral" && value === undefined) return malformed;
    if (source === "stray" && verdict.kind !== "failure") return neutral;
    return verdict;
  }

  #note(value: unknown): void {
    if (typeof value !== "object" || value === null) return;
    this.#onValue?.(value);
    const usage = readUsage(value);
    if (usage !== undefined) this.usage = mergeUsage(this.usage, usage);
    this.responseModel ??= modelOf(value);
    const { sequence_number: sequence, response } = value as {
      sequence_number?: unknown;
      response?: { id?: unknown } | null;
    };
    if (typeof sequence === "number" && sequence > (this.sequenceNumber ?? -1)) this.sequenceNumber = sequence;
    if (typeof response === "object" && response !== null && typeof response.id === "string")
      this.responseId = response.id;
  }
}

function modelOf(value: object): string | undefined {
  const { model, modelVersion, response, message } = value as Record<string, unknown>;
  const name = named(model) ?? named(modelVersion) ?? stringAt(response, "model") ?? stringAt(message, "model");
  return name?.slice(0, maxModelLength);
}

function named(name: unknown): string | undefined {
  return typeof name === "string" && name !== "" ? name : undefined;
}

function parse(data: string): unknown {
  // The sentinel of every chat stream: an exception would cost more than all of its other frames.
  if (data === "[DONE]") return undefined;
  try {
    return JSON.parse(data);
  } catch {
    return undefined;
  }
}
