/**
 * An attempt after release: passes on what still comes, watches it, and tells once how it ended. Nothing can be retried
 * any more; a stream that breaks is told to the client as an error event or as a broken body.
 */

import type { Clock } from "../clock.js";
import type { Failure } from "../errors.js";
import type { CancelReason } from "../events.js";
import { clientAbort, networkFailure, writeStall } from "../gate/failures.js";
import { deadlineFailure, type GateDeadline, type GateOutput } from "../gate/gate.js";
import type { Inspector } from "../gate/inspector.js";
import type { TokenUsage } from "../gate/usage.js";
import type { UsageReader } from "../gate/usage-reader.js";
import type { UpstreamCall, UpstreamHandler } from "../upstream/upstream.js";
import type { AttemptObserver, AttemptSpec, StreamFacts } from "./attempt-spec.js";
import type { AttemptTimers } from "./attempt-timers.js";
import { StreamBody, type BodySource } from "./stream-body.js";

export interface ReleasedParts {
  readonly spec: AttemptSpec;
  readonly clock: Clock;
  readonly timers: AttemptTimers;
  readonly call: UpstreamCall;
  readonly observer: AttemptObserver;
  /** Undefined: the answer is relayed ungated. */
  readonly inspector: Inspector | undefined;
  /** Of an ungated answer. Undefined: nobody asks for what it says. */
  readonly usageReader: UsageReader | undefined;
}

export class ReleasedAttempt implements BodySource, UpstreamHandler {
  readonly body: StreamBody;
  readonly #spec: AttemptSpec;
  readonly #clock: Clock;
  readonly #timers: AttemptTimers;
  readonly #call: UpstreamCall;
  readonly #observer: AttemptObserver;
  readonly #inspector: Inspector | undefined;
  readonly #usageReader: UsageReader | undefined;
  /** `dropping`: the client left, and the answer is read on without it. */
  #phase: "relaying" | "dropping" | "closed" = "relaying";
  #bytes: number;
  #failed = false;
  #paused = false;
  #bodyEnded = false;

  /**
   * @param held goes first
   * @param bytes that came up to now
   */
  constructor(parts: ReleasedParts, held: Uint8Array[], bytes: number) {
    this.#spec = parts.spec;
    this.#clock = parts.clock;
    this.#timers = parts.timers;
    this.#call = parts.call;
    this.#observer = parts.observer;
    this.#inspector = parts.inspector;
    this.#usageReader = parts.usageReader;
    this.#bytes = bytes;
    this.body = new StreamBody(this, held);
  }

  get dropping(): boolean {
    return this.#phase === "dropping";
  }

  /** A failure was released, since validation is off. After the release has been told. */
  recordReleased(): void {
    this.#recordFailure(this.#inspector?.recorded);
  }

  onConnected(): void {
    // Long ago.
  }

  onHead(): void {
    // The same.
  }

  onData(chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    this.#timers.touch();
    if (this.#phase !== "relaying") return;
    const inspector = this.#inspector;
    if (inspector === undefined) this.#usageReader?.push(chunk);
    else {
      inspector.push(chunk);
      const { recorded } = inspector;
      if (recorded !== undefined) this.#recordFailure(recorded);
    }
    this.body.push(chunk);
  }

  onEnd(): void {
    const inspector = this.#inspector;
    if (this.#phase === "dropping") return this.#dropped();
    if (this.#phase === "closed") return;
    if (inspector === undefined) this.#finish(true);
    else this.#apply(inspector.end());
  }

  onError(cause: Error): void {
    const inspector = this.#inspector;
    if (this.#phase === "dropping") return this.#dropped();
    if (this.#phase === "closed") return;
    if (inspector === undefined) this.#fail(networkFailure(cause, true), false);
    else this.#apply(inspector.error(cause));
  }

  onDeadline(deadline: GateDeadline, timeoutMs: number): void {
    const inspector = this.#inspector;
    const call = this.#call;
    if (this.#phase === "dropping") {
      call.abort();
      return this.#dropped();
    }
    if (inspector === undefined) return this.#fail(deadlineFailure(deadline, timeoutMs), false);
    this.#apply(inspector.deadline(deadline, timeoutMs));
    // A stream that is complete may be left open by the provider.
    if (inspector.phase === "closed") call.abort();
  }

  /** The gateway closes. A stream that is complete ends well. */
  stop(failure: Failure): void {
    const inspector = this.#inspector;
    const call = this.#call;
    if (this.#phase === "dropping") {
      call.abort();
      return this.#dropped();
    }
    if (this.#phase === "relaying") {
      const output = inspector?.deadline("request", 0);
      call.abort();
      if (output?.type === "finish") this.#finish(output.complete);
      else this.#fail(inspector?.recorded ?? failure, inspector?.recorded === undefined);
    }
    this.body.breakOff(failure);
  }

  // What the body asks of its source.

  pause(): void {
    if (this.#phase !== "relaying" || this.#paused) return;
    this.#paused = true;
    this.#timers.pause();
    this.#call.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#timers.resume();
    this.#call.resume();
  }

  cancel(reason: CancelReason): void {
    const spec = this.#spec;
    const call = this.#call;
    const inspector = this.#inspector;
    const left = reason === "client-abort" ? clientAbort() : writeStall(spec.clocks.writeStallTimeoutMs);
    if (this.#phase === "relaying" && spec.detached && reason === "client-abort") {
      this.#phase = "dropping";
      this.resume();
    } else {
      call.abort();
      inspector?.close();
      this.#close();
    }
    this.#endBody(left);
  }

  handedOver(): void {
    this.#endBody(undefined);
  }

  #apply(output: GateOutput): void {
    if (output.type === "finish") this.#finish(output.complete);
    else if (output.type === "fail") this.#fail(output.failure, output.append);
  }

  #finish(complete: boolean): void {
    this.#recordFailure(this.#inspector?.recorded);
    this.#endStream(complete);
    this.body.finish({ type: "finish" });
  }

  #fail(failure: Failure, append: boolean): void {
    this.#call.abort();
    this.#recordFailure(failure);
    const event = append ? this.#errorEvent(failure) : undefined;
    this.#endStream(false);
    if (event !== undefined) this.body.push(event);
    this.body.finish({ type: "fail", failure });
  }

  #errorEvent(failure: Failure): Uint8Array | undefined {
    const spec = this.#spec;
    const inspector = this.#inspector;
    if (inspector === undefined || inspector.jsonBody || spec.onMidStreamFailure === "abort") return undefined;
    const { sequenceNumber, responseId } = inspector;
    return spec.protocol.errorEvent({ failure, sequenceNumber, responseId });
  }

  #recordFailure(failure: Failure | undefined): void {
    if (failure === undefined || this.#failed) return;
    this.#failed = true;
    this.#observer.onStreamFail(failure, this.#facts());
  }

  #endStream(complete: boolean): void {
    const usageReader = this.#usageReader;
    const observer = this.#observer;
    const timers = this.#timers;
    this.#close();
    usageReader?.end();
    const { durationMs, bytes, usage, responseModel } = this.#facts();
    observer.onStreamEnd({ complete, durationMs, bytes, usage, responseModel, pausedMs: timers.pausedMs });
  }

  #facts(): StreamFacts {
    const spec = this.#spec;
    const clock = this.#clock;
    const inspector = this.#inspector;
    const usageReader = this.#usageReader;
    const { responseModel } = inspector ?? usageReader ?? { responseModel: undefined };
    return { durationMs: clock.now() - spec.startedAt, bytes: this.#bytes, usage: this.#usage(), responseModel };
  }

  #usage(): TokenUsage | undefined {
    return (this.#inspector ?? this.#usageReader)?.usage;
  }

  #close(): void {
    this.#phase = "closed";
    this.#timers.stop();
  }

  #dropped(): void {
    this.#close();
    this.#observer.onDropped();
  }

  #endBody(left: Failure | undefined): void {
    if (this.#bodyEnded) return;
    this.#bodyEnded = true;
    this.#observer.onBodyEnd(left, this.#usage());
  }
}
