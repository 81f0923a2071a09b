/** What a protocol says of one frame. */

import type { Failure } from "../errors.js";

export type Verdict = OutputVerdict | LifecycleVerdict | NeutralVerdict | TerminalVerdict | FailureVerdict;

/** Generated output: text, reasoning, a tool call. */
export interface OutputVerdict {
  readonly kind: "output";
  /** The same frame also ends the stream as the protocol says (a whole JSON answer, text with a finish reason). */
  readonly complete?: boolean;
}

/** A response is under way, without output. Counted: `gate.maxLifecycleEvents`. */
export interface LifecycleVerdict {
  readonly kind: "lifecycle";
}

/** Everything else. Held and, but for keepalives, counted toward `gate.maxHeldEvents`. */
export interface NeutralVerdict {
  readonly kind: "neutral";
  /** A ping or keepalive: does not count as an event while the detail of a failure is awaited. */
  readonly keepalive?: boolean;
  /** Could not be parsed. A stream that ends with nothing better fails as malformed. */
  readonly malformed?: boolean;
  /** JSON that is no answer of the protocol. A body that ends with nothing better fails as invalid. */
  readonly foreign?: boolean;
}

/** The generation is over, or part of the news that it is: reason and usage may come in separate frames. */
export interface TerminalVerdict {
  readonly kind: "terminal";
  /** The protocol's own word, e.g. `end_turn`, `length`, `SAFETY`. Absent where the frame gives none. */
  readonly reason?: string | undefined;
  /** Output tokens, where the frame reports them. */
  readonly outputTokens?: number | undefined;
  /** The protocol's last event (`[DONE]`, `message_stop`, …): nothing follows that could change the judgement. */
  readonly final: boolean;
  /** A stream that holds this frame is complete, whatever else is missing. */
  readonly complete: boolean;
}

export interface FailureVerdict {
  readonly kind: "failure";
  readonly failure: Failure;
  /** By the protocol a stream that reports this failure is over, too: what breaks after it breaks nothing. */
  readonly complete?: boolean;
  /** Neither code nor message: the next frame may hold the reason (Responses API, Microsoft Foundry). */
  readonly unexplained?: boolean;
  /** The same of an `error` event: it is a failure, but explains none that came before it. */
  readonly saysNothing?: boolean;
}

export const output: OutputVerdict = { kind: "output" };
export const completeOutput: OutputVerdict = { kind: "output", complete: true };
export const lifecycle: LifecycleVerdict = { kind: "lifecycle" };
export const neutral: NeutralVerdict = { kind: "neutral" };
export const keepalive: NeutralVerdict = { kind: "neutral", keepalive: true };
export const malformed: NeutralVerdict = { kind: "neutral", malformed: true };
export const foreign: NeutralVerdict = { kind: "neutral", foreign: true };
