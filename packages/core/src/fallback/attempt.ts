/**
 * The driver of one attempt: sends the request, brings bytes and time to the gate, and ends in exactly one of `released`
 * and `rejected`. Owns the attempt's timers and its upstream call, and ends both.
 */

import type { Clock } from "../clock.js";
import type { Failure } from "../errors.js";
import type { CancelReason, ReleasedBody } from "../events.js";
import * as failures from "../gate/failures.js";
import { deadlineFailure, type GateDeadline, type GateOutput, type GateRules, type OverflowLimit } from "../gate/gate.js";
import { failureFromHttp } from "../gate/in-band-error.js";
import { Inspector } from "../gate/inspector.js";
import type { GateProtocol } from "../gate/protocols/protocol.js";
import type { TokenUsage } from "../gate/usage.js";
import { UsageReader } from "../gate/usage-reader.js";
import { isUndecodableBody } from "../upstream/decoding.js";
import type { ResponseHeaders } from "../response-headers.js";
import type { UpstreamCall, UpstreamClient, UpstreamHandler, UpstreamRequest } from "../upstream/upstream.js";
import { Deadlines } from "./deadlines.js";
import { ErrorAnswer } from "./error-answer.js";
import { withRetryHeaders } from "./retry-after.js";
import { StreamBody } from "./stream-body.js";

export interface AttemptSpec {
  readonly request: UpstreamRequest;
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
  /** Read the usage of an answer that is relayed ungated. That of a gated one costs nothing, and is always read. */
  readonly readUsage: boolean;
  /** Hears of the frames that are decoded, before the client gets them. */
  readonly onValue: ((value: object) => void) | undefined;
}

/** Lengths in ms; absent: off. */
export interface AttemptClocks {
  readonly ttftTimeoutMs: number | undefined;
  readonly requestTimeoutMs: number;
  /** The request timeout ends at release. */
  readonly requestTimeoutEndsAtRelease: boolean;
  readonly idleTimeoutMs: number | undefined;
  readonly connectTimeoutMs: number;
  /** Over all attempts up to release, or this attempt's share of it: when, and how long it was. */
  readonly total: { readonly at: number; readonly timeoutMs: number } | undefined;
  /** 0: never. Not applied under a TTFT timeout. */
  readonly maxHoldMs: number;
  readonly failureDetailTimeoutMs: number;
  readonly writeStallTimeoutMs: number;
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

export type AttemptResult =
  | AttemptReleased
  | {
      readonly type: "rejected";
      readonly failure: Failure;
      /** Of the answer that failed, where there was one. */
      readonly headers: ResponseHeaders | undefined;
      readonly durationMs: number;
      readonly holdMs: number;
      readonly usage: TokenUsage | undefined;
    };

/** A stream after release, up to a moment. */
export interface StreamFacts {
  /** From the start of the attempt. */
  readonly durationMs: number;
  readonly bytes: number;
  readonly usage: TokenUsage | undefined;
  readonly responseModel: string | undefined;
}

/** What happens to an attempt besides its result, in this order. Called synchronously; must not throw. */
export interface AttemptObserver {
  onOverflow(limit: OverflowLimit, heldBytes: number, released: boolean): void;
  /** At the moment of release. The result follows in a microtask, when the stream may be over already. */
  onRelease(result: AttemptReleased): void;
  /** An in-band failure went by, or the stream broke. At most once. */
  onStreamFail(failure: Failure, facts: StreamFacts): void;
  /** The provider's stream is over. Not where the client left before. */
  onStreamEnd(end: StreamFacts & { readonly complete: boolean; readonly pausedMs: number }): void;
  /** After release, exactly once: the body was handed over to its end, or the client left (499). */
  onBodyEnd(left: Failure | undefined, usage: TokenUsage | undefined): void;
  /** An answer that was read on without its client is over. Only where `detached` is set. */
  onDropped(): void;
}

type Clocks = GateDeadline | "connect";
type Phase = "waiting" | "error-answer" | "gated" | "relaying" | "dropping" | "closed";

export class Attempt implements UpstreamHandler {
  readonly #spec: Omit<AttemptSpec, "request">;
  readonly #clock: Clock;
  readonly #observer: AttemptObserver;
  readonly #deadlines: Deadlines<Clocks>;
  readonly #startedAt: number;
  readonly #inspector: Inspector | undefined;
  #phase: Phase = "waiting";
  #call: UpstreamCall | undefined;
  #resolve: ((result: AttemptResult) => void) | undefined;
  #status = 0;
  #headers: ResponseHeaders | undefined;
  #errorAnswer: ErrorAnswer | undefined;
  #usageReader: UsageReader | undefined;
  #body: StreamBody | undefined;
  #bytes = 0;
  #holdingSince: number | undefined;
  #holdArmed = false;
  #failed = false;
  #connected = false;
  #detailing = false;
  #paused = false;
  #pausedAt = 0;
  /** While the client took nothing: no fault of the provider. */
  #pausedMs = 0;
  #bodyEnded = false;

  /** Starts at once. */
  static run(
    spec: AttemptSpec,
    client: UpstreamClient,
    clock: Clock,
    observer: AttemptObserver,
  ): { attempt: Attempt; result: Promise<AttemptResult> } {
    const attempt = new Attempt(spec, clock, observer);
    const result = new Promise<AttemptResult>((resolve) => {
      attempt.#resolve = resolve;
    });
    attempt.#armFirst();
    try {
      attempt.#call = client.send(spec.request, attempt);
    } catch (bug) {
      attempt.#close();
      throw bug;
    }
    // A handler call may come before `send` returns; one that ends the attempt leaves the call to be aborted here.
    if (attempt.#phase === "closed") attempt.#call.abort();
    return { attempt, result };
  }

  private constructor(spec: AttemptSpec, clock: Clock, observer: AttemptObserver) {
    // A stream may last for long, and its request may be large: only whoever sends it keeps it.
    const { request: _, ...rest } = spec;
    this.#spec = rest;
    this.#clock = clock;
    this.#observer = observer;
    this.#startedAt = spec.startedAt;
    this.#inspector = spec.rules === undefined ? undefined : new Inspector(spec.protocol, spec.rules, spec.maxHeldBytes, spec.onValue);
    this.#deadlines = new Deadlines(clock, (kind, timeoutMs) => this.#onDeadline(kind, timeoutMs));
  }

  /** Ends the attempt before commit: the client left, or the gateway closes. After commit the body's reader does that. */
  abort(failure: Failure): void {
    if (this.#resolve !== undefined) this.#reject(failure);
  }

  /** The answer is read on without its client. */
  get dropping(): boolean {
    return this.#phase === "dropping";
  }

  /** Ends the attempt whatever it is at: the gateway closes. A stream that is complete ends well. */
  stop(failure: Failure): void {
    if (this.#resolve !== undefined) return this.#reject(failure);
    if (this.#phase === "dropping") {
      this.#call?.abort();
      return this.#dropped();
    }
    if (this.#phase === "relaying") {
      const output = this.#inspector?.deadline("request", 0);
      this.#call?.abort();
      if (output?.type === "finish") this.#finish(output.complete);
      else this.#fail(this.#inspector?.recorded ?? failure, this.#inspector?.recorded === undefined);
    }
    this.#body?.breakOff(failure);
  }

  onConnected(): void {
    this.#connected = true;
    this.#deadlines.clear("connect");
  }

  onHead(status: number, headers: ResponseHeaders): void {
    if (this.#phase !== "waiting") return;
    this.#connected = true;
    this.#status = status;
    this.#headers = headers;
    this.#touch();
    if (status < 200 || status > 299) this.#startErrorAnswer();
    else if (this.#inspector === undefined) this.#relay(headers);
    else if (isEncoded(headers)) this.#reject(failures.invalidBody());
    else this.#phase = "gated";
  }

  /** Ungated. */
  #relay(headers: ResponseHeaders): void {
    const { protocol, maxHeldBytes, readUsage, onValue } = this.#spec;
    const isRead = readUsage || onValue !== undefined;
    if (isRead && !isEncoded(headers)) this.#usageReader = new UsageReader(protocol, maxHeldBytes, onValue);
    this.#release("ungated", []);
  }

  /** Since the first held byte. */
  get #holdMs(): number {
    return this.#holdingSince === undefined ? 0 : this.#clock.now() - this.#holdingSince;
  }

  get #usage(): TokenUsage | undefined {
    return (this.#inspector ?? this.#usageReader)?.usage;
  }

  #streamFacts(): StreamFacts {
    const { responseModel } = this.#inspector ?? this.#usageReader ?? { responseModel: undefined };
    return { durationMs: this.#clock.now() - this.#startedAt, bytes: this.#bytes, usage: this.#usage, responseModel };
  }

  onData(chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    this.#touch();
    switch (this.#phase) {
      case "error-answer":
        if (this.#errorAnswer?.push(chunk) === true) this.#rejectErrorAnswer();
        return;
      case "gated":
        return this.#hold(this.#inspector as Inspector, chunk);
      case "relaying":
        if (this.#inspector !== undefined) this.#watch(this.#inspector, chunk);
        else this.#usageReader?.push(chunk);
        this.#body?.push(chunk);
    }
  }

  onEnd(): void {
    switch (this.#phase) {
      case "error-answer":
        return this.#rejectErrorAnswer();
      case "gated":
        this.#apply((this.#inspector as Inspector).end());
        // Released at its end: only then is there a body, which ends, too.
        if (this.#body !== undefined) this.onEnd();
        return;
      case "relaying":
        if (this.#inspector === undefined) return this.#finish(true);
        return this.#apply(this.#inspector.end());
      case "dropping":
        return this.#dropped();
    }
  }

  onError(cause: Error): void {
    switch (this.#phase) {
      case "waiting":
        return this.#reject(failures.networkFailure(cause, this.#connected));
      case "error-answer":
        return this.#rejectErrorAnswer();
      case "gated":
        if (isUndecodableBody(cause)) return this.#reject({ ...failures.invalidBody(), cause });
        return this.#apply((this.#inspector as Inspector).error(cause));
      case "relaying":
        if (this.#inspector === undefined) return this.#fail(failures.networkFailure(cause, true), true);
        return this.#apply(this.#inspector.error(cause));
      case "dropping":
        return this.#dropped();
    }
  }

  #armFirst(): void {
    const { clocks } = this.#spec;
    const at = this.#startedAt;
    this.#deadlines.set("connect", this.#clock.now() + clocks.connectTimeoutMs, clocks.connectTimeoutMs);
    if (clocks.ttftTimeoutMs !== undefined) this.#deadlines.set("ttft", at + clocks.ttftTimeoutMs, clocks.ttftTimeoutMs);
    this.#deadlines.set("request", at + clocks.requestTimeoutMs, clocks.requestTimeoutMs);
    if (clocks.total !== undefined) this.#deadlines.set("total", clocks.total.at, clocks.total.timeoutMs);
    this.#touch();
  }

  /** Any byte re-arms the idle clock. While the client takes nothing, the provider's silence is no fault of its own. */
  #touch(): void {
    const { idleTimeoutMs } = this.#spec.clocks;
    if (idleTimeoutMs === undefined || this.#paused || this.#phase === "closed") return;
    this.#deadlines.set("idle", this.#clock.now() + idleTimeoutMs, idleTimeoutMs);
  }

  #hold(inspector: Inspector, chunk: Uint8Array): void {
    this.#holdingSince ??= this.#clock.now();
    const output = inspector.push(chunk);
    // The hold clock starts with the first event: a provider that queues a request may send comments for minutes.
    const { maxHoldMs, ttftTimeoutMs } = this.#spec.clocks;
    if (!this.#holdArmed && inspector.holdsEvent && maxHoldMs > 0 && ttftTimeoutMs === undefined) {
      this.#holdArmed = true;
      this.#deadlines.set("hold", this.#clock.now() + maxHoldMs, maxHoldMs);
    }
    this.#apply(output);
  }

  #onDeadline(kind: Clocks, timeoutMs: number): void {
    if (kind === "connect") return this.#reject(failures.connectTimeout(timeoutMs));
    switch (this.#phase) {
      case "waiting":
        return this.#reject(deadlineFailure(kind, timeoutMs));
      case "error-answer":
        return this.#rejectErrorAnswer();
      case "gated":
        return this.#apply((this.#inspector as Inspector).deadline(kind, timeoutMs));
      case "relaying":
        if (this.#inspector === undefined) return this.#fail(deadlineFailure(kind, timeoutMs), true);
        this.#apply(this.#inspector.deadline(kind, timeoutMs));
        // A stream that is complete may be left open by the provider.
        if (this.#inspector.phase === "closed") this.#call?.abort();
        return;
      case "dropping":
        this.#call?.abort();
        return this.#dropped();
    }
  }

  /** Carries out what the machine says. */
  #apply(output: GateOutput): void {
    switch (output.type) {
      case "hold":
        // The one place where the machine waits for a frame with a clock of its own.
        if (this.#inspector?.phase === "awaiting-detail") this.#startDetail();
        return;
      case "release":
        if (output.overflow !== undefined) this.#observer.onOverflow(output.overflow, this.#inspector?.heldBytes ?? 0, true);
        return this.#release(output.reason, this.#inspector?.takeHeld() ?? []);
      case "reject":
        if (output.overflow !== undefined) this.#observer.onOverflow(output.overflow, this.#inspector?.heldBytes ?? 0, false);
        return this.#reject(output.failure);
      case "finish":
        return this.#finish(output.complete);
      case "fail":
        return this.#fail(output.failure, output.append);
    }
  }

  #watch(inspector: Inspector, chunk: Uint8Array): void {
    inspector.push(chunk);
    this.#recordFailure(inspector.recorded);
  }

  #recordFailure(failure: Failure | undefined): void {
    if (failure === undefined || this.#failed) return;
    this.#failed = true;
    this.#observer.onStreamFail(failure, this.#streamFacts());
  }

  #startErrorAnswer(): void {
    this.#phase = "error-answer";
    this.#errorAnswer = new ErrorAnswer();
    // The status is known; its body may take no longer than the detail of an in-band failure.
    this.#startDetail();
  }

  /** Once: a provider that only keeps the connection alive does not move it. */
  #startDetail(): void {
    if (this.#detailing) return;
    this.#detailing = true;
    const { failureDetailTimeoutMs } = this.#spec.clocks;
    this.#deadlines.set("detail", this.#clock.now() + failureDetailTimeoutMs, failureDetailTimeoutMs);
  }

  #rejectErrorAnswer(): void {
    const body = this.#errorAnswer?.text() ?? "";
    // A redirect is never followed: the credentials would go with it.
    this.#reject(this.#status < 400 ? failures.invalidBody() : failureFromHttp(this.#status, body, { flatErrors: true }));
  }

  #release(reason: string, held: Uint8Array[]): void {
    const now = this.#clock.now();
    const { clocks } = this.#spec;
    for (const kind of ["connect", "ttft", "total", "hold", "detail"] as const) this.#deadlines.clear(kind);
    if (clocks.requestTimeoutEndsAtRelease) this.#deadlines.clear("request");
    this.#phase = "relaying";
    this.#body = new StreamBody(this, held);
    const result: AttemptReleased = {
      type: "released",
      status: this.#status,
      headers: this.#headers as ResponseHeaders,
      body: this.#body,
      jsonBody: this.#inspector === undefined || this.#inspector.jsonBody,
      reason,
      ttftMs: now - this.#startedAt,
      holdMs: this.#holdMs,
      heldBytes: this.#inspector?.heldBytes ?? 0,
    };
    this.#observer.onRelease(result);
    this.#settle(result);
    this.#recordFailure(this.#inspector?.recorded);
  }

  #reject(failure: Failure): void {
    if (this.#resolve === undefined) return;
    this.#call?.abort();
    this.#close();
    this.#settle({
      type: "rejected",
      failure: this.#headers === undefined ? failure : withRetryHeaders(failure, this.#headers, Date.now()),
      headers: this.#headers,
      durationMs: this.#clock.now() - this.#startedAt,
      holdMs: this.#holdMs,
      usage: this.#usage,
    });
  }

  #settle(result: AttemptResult): void {
    const resolve = this.#resolve;
    this.#resolve = undefined;
    resolve?.(result);
  }

  #finish(complete: boolean): void {
    this.#recordFailure(this.#inspector?.recorded);
    this.#endStream(complete);
    this.#body?.finish({ type: "finish" });
  }

  #fail(failure: Failure, append: boolean): void {
    this.#call?.abort();
    this.#recordFailure(failure);
    const event = append ? this.#errorEvent(failure) : undefined;
    this.#endStream(false);
    if (event !== undefined) this.#body?.push(event);
    this.#body?.finish({ type: "fail", failure });
  }

  #errorEvent(failure: Failure): Uint8Array | undefined {
    const inspector = this.#inspector;
    if (inspector === undefined || inspector.jsonBody || this.#spec.onMidStreamFailure === "abort") return undefined;
    const { sequenceNumber, responseId } = inspector;
    return this.#spec.protocol.errorEvent({ failure, sequenceNumber, responseId });
  }

  #endStream(complete: boolean): void {
    this.#close();
    this.#usageReader?.end();
    this.#observer.onStreamEnd({ complete, pausedMs: this.#pausedMs, ...this.#streamFacts() });
  }

  #close(): void {
    this.#phase = "closed";
    this.#deadlines.stop();
    if (this.#body === undefined) this.#inspector?.close();
  }

  #dropped(): void {
    this.#close();
    this.#observer.onDropped();
  }

  // What the body asks of its source.

  pause(): void {
    if (this.#phase !== "relaying" || this.#paused) return;
    this.#paused = true;
    this.#pausedAt = this.#clock.now();
    this.#deadlines.clear("idle");
    this.#call?.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#pausedMs += this.#clock.now() - this.#pausedAt;
    this.#touch();
    this.#call?.resume();
  }

  cancel(reason: CancelReason): void {
    const left = reason === "client-abort" ? failures.clientAbort() : failures.writeStall(this.#spec.clocks.writeStallTimeoutMs);
    if (this.#phase === "relaying" && this.#spec.detached && reason === "client-abort") {
      this.#phase = "dropping";
      this.resume();
    } else {
      this.#call?.abort();
      this.#inspector?.close();
      this.#close();
    }
    this.#endBody(left);
  }

  handedOver(): void {
    this.#endBody(undefined);
  }

  #endBody(left: Failure | undefined): void {
    if (this.#bodyEnded) return;
    this.#bodyEnded = true;
    this.#observer.onBodyEnd(left, this.#usage);
  }
}

/** The bytes are compressed although `identity` was asked for: nothing in them can be judged. */
function isEncoded(headers: ResponseHeaders): boolean {
  const encoding = headers["content-encoding"];
  return encoding !== undefined && encoding !== "" && String(encoding).toLowerCase() !== "identity";
}
