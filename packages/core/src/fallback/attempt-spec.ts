/** An attempt from outside: what it is given, what it comes to, and whom it tells of it. */

import type { Failure } from "../errors.js";
import type { ReleasedBody } from "../events.js";
import type { GateRules, OverflowLimit } from "../gate/gate.js";
import type { GateProtocol } from "../gate/protocols/protocol.js";
import type { TokenUsage } from "../gate/usage.js";
import type { ResponseHeaders } from "../response-headers.js";
import type { AttemptClocks } from "./attempt-clocks.js";

export interface AttemptSpec {
  /** On the clock. Earlier than the request is sent where a credential had to be fetched. */
  readonly startedAt: number;
  readonly protocol: GateProtocol;
  /** Absent: the answer is relayed ungated. */
  readonly rules: GateRules | undefined;
  readonly clocks: AttemptClocks;
  readonly maxHeldBytes: number;
  readonly onMidStreamFailure: "event" | "abort";
  /** Read to its end even when the client leaves (`background: true`). */
  readonly detached: boolean;
  /** Somebody asks for the usage: what says nothing else is decoded for it, too. */
  readonly readUsage: boolean;
  /** Hears of the frames that are decoded, before the client gets them. */
  readonly onValue: ((value: object) => void) | undefined;
}

export interface AttemptReleased {
  readonly type: "released";
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: ReleasedBody;
  /** The body is no stream of the protocol: it keeps the provider's content type. */
  readonly jsonBody: boolean;
  readonly reason: string;
  readonly ttftMs: number;
  readonly holdMs: number;
  readonly heldBytes: number;
}

export interface AttemptRejected {
  readonly type: "rejected";
  readonly failure: Failure;
  /** Of the answer that failed, where there was one. */
  readonly headers: ResponseHeaders | undefined;
  readonly durationMs: number;
  readonly holdMs: number;
  readonly usage: TokenUsage | undefined;
}

export type AttemptResult = AttemptReleased | AttemptRejected;

/** A stream after release, up to a moment. */
export interface StreamFacts {
  /** From the start of the attempt. */
  readonly durationMs: number;
  readonly bytes: number;
  readonly usage: TokenUsage | undefined;
  readonly responseModel: string | undefined;
}

export interface StreamEnd extends StreamFacts {
  readonly complete: boolean;
  /** How long the client took nothing. */
  readonly pausedMs: number;
}

/** What happens to an attempt besides its result, in this order. Called synchronously; must not throw. */
export interface AttemptObserver {
  onOverflow(limit: OverflowLimit, heldBytes: number, released: boolean): void;
  /** At the moment of release. The result follows in a microtask, when the stream may be over already. */
  onRelease(result: AttemptReleased): void;
  /** An in-band failure went by, or the stream broke. At most once. */
  onStreamFail(failure: Failure, facts: StreamFacts): void;
  /** The provider's stream is over. Not where the client left before. */
  onStreamEnd(end: StreamEnd): void;
  /** After release, exactly once: the body was handed over to its end, or the client left (499). */
  onBodyEnd(left: Failure | undefined, usage: TokenUsage | undefined): void;
  /** An answer that was read on without its client is over. Only where `detached` is set. */
  onDropped(): void;
}
