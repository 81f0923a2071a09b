/** What the gate makes of a captured answer, frame by frame. */

import type { Failure } from "../errors.js";
import { brokenFraming } from "../gate/aws-frames.js";
import type { Frame } from "../gate/frame.js";
import { Gate, type GateInput, type GateOutput } from "../gate/gate.js";
import { failureFromHttp } from "../gate/in-band-error.js";
import { Judge } from "../gate/judge.js";
import { defaultGateOptions, gateRules } from "../gate/options.js";
import type { GateProtocol } from "../gate/protocols/protocol.js";
import type { Capture } from "./capture.js";

export interface ExplainedFrame {
  readonly number: number;
  /** Where in the decoded body it lies, in bytes. */
  readonly start: number;
  readonly end: number;
  readonly kind: Frame["kind"];
  /** Event name, where there is one. */
  readonly event: string;
  /** Beginning of the data. */
  readonly data: string;
  /** What the protocol says of it; `ignored` for comments and events without data. */
  readonly verdict: string;
  /** What the gate does on it. */
  readonly action: GateOutput["type"];
}

export interface Outcome {
  /**
   * `released`: the client gets the stream. `rejected`: it gets an error status, or the next target its turn. `broken`: a
   * stream that was released, and then failed.
   */
  readonly result: "released" | "rejected" | "broken";
  /** Number of the frame that decided; undefined: the end of the stream, or the status of the answer. */
  readonly frame: number | undefined;
  readonly reason: string;
  readonly status: number;
  readonly code?: string;
  readonly message?: string;
  readonly retryable?: boolean;
}

export interface Explanation {
  readonly protocol: string;
  readonly bytes: number;
  readonly frames: readonly ExplainedFrame[];
  readonly outcome: Outcome;
  /** Nothing in the body is in a framing that is known. */
  readonly noStream: boolean;
}

/** As `gateStream` with its defaults: one target, no TTFT timeout. The capture's end is taken for the stream's. */
export function explain({ head, body }: Capture, protocol: GateProtocol): Explanation {
  const facts = { protocol: protocol.name, bytes: body.length };
  if (head !== undefined && (head.status < 200 || head.status > 299)) {
    const failure = failureFromHttp(head.status, new TextDecoder().decode(body.subarray(0, 65_536)), {
      flatErrors: true,
    });
    return {
      ...facts,
      frames: [],
      noStream: false,
      outcome: { ...rejected(failure, undefined), reason: `HTTP ${head.status}` },
    };
  }
  const trace = new Trace(protocol);
  const decoder = protocol.createDecoder();
  for (const frame of decoder.push(body)) trace.add(frame, false);
  for (const frame of decoder.end()) trace.add(frame, true);
  const outcome = trace.finish();
  const isMarked = /^\s*[<[{]/.test(new TextDecoder().decode(body.subarray(0, 64)));
  const isBinary = body.subarray(0, 1024).includes(0);
  const noStream = !isMarked && trace.frames.every((frame) => isUnknown(frame) || (isBinary && frame.kind !== "event"));
  return { ...facts, frames: trace.frames, outcome, noStream };
}

/** Bytes that are in no framing. */
function isUnknown({ kind, event, start }: ExplainedFrame): boolean {
  return kind === "foreign" || (event === brokenFraming && start === 0);
}

class Trace {
  readonly frames: ExplainedFrame[] = [];
  readonly #gate: Gate;
  readonly #judge: Judge;
  #outcome: Outcome | undefined;

  constructor(protocol: GateProtocol) {
    const facts = { ttftTimeoutMs: undefined, anotherTarget: false, answersToolResult: false, requireTerminal: true };
    this.#gate = new Gate(gateRules(protocol, defaultGateOptions, facts));
    this.#judge = new Judge(protocol);
  }

  add(frame: Frame, trailing: boolean): void {
    const number = this.frames.length + 1;
    const input = this.#judge.judge(frame, trailing);
    const output: GateOutput = input === undefined ? { type: "ignore" } : this.#gate.step(input);
    const { kind, start, end } = frame;
    const data = "data" in frame ? frame.data.slice(0, 400) : "";
    const event = kind === "event" ? frame.event : "";
    this.frames.push({ number, start, end, kind, event, data, verdict: verdictOf(input), action: output.type });
    this.#take(output, number);
  }

  finish(): Outcome {
    let output = this.#gate.step({ type: "end" });
    this.#take(output, undefined);
    // Where only the end could decide, it is asked for again.
    if (output.type === "release") this.#take((output = this.#gate.step({ type: "end" })), undefined);
    if (this.#outcome === undefined) throw new Error("the gate came to no decision");
    return this.#outcome;
  }

  #take(output: GateOutput, frame: number | undefined): void {
    const before = this.#outcome;
    if (output.type === "reject") this.#outcome = rejected(output.failure, frame);
    else if (output.type === "release")
      this.#outcome = { result: "released", frame, reason: output.reason, status: 200 };
    else if (output.type === "fail" && before !== undefined) this.#outcome = broken(before, output.failure);
    else if (output.type === "forward" && output.record !== undefined && before !== undefined)
      this.#outcome = broken(before, output.record);
  }
}

function rejected({ kind, status, code, message, retryable }: Failure, frame: number | undefined): Outcome {
  return { result: "rejected", frame, reason: kind, status, code, message, retryable };
}

/** The first failure counts. */
function broken(before: Outcome, { code, message, retryable }: Failure): Outcome {
  return before.result === "broken" ? before : { ...before, result: "broken", code, message, retryable };
}

function verdictOf(input: GateInput | undefined): string {
  if (input === undefined) return "ignored";
  if (input.type !== "frame") return input.type;
  const { verdict } = input;
  switch (verdict.kind) {
    case "failure":
      return verdict.unexplained === true
        ? "failure without a reason"
        : `failure ${verdict.failure.status} ${verdict.failure.code}`;
    case "terminal": {
      const reason = verdict.reason === undefined ? "" : ` ${verdict.reason}`;
      return `terminal${reason}${verdict.outputTokens === undefined ? "" : `, ${verdict.outputTokens} output tokens`}`;
    }
    case "neutral":
      if (verdict.keepalive === true) return "neutral (keepalive)";
      return verdict.malformed === true ? "neutral (no JSON)" : "neutral";
    case "output":
      return verdict.complete === true ? "output, complete" : "output";
    case "lifecycle":
      return "lifecycle";
  }
}
