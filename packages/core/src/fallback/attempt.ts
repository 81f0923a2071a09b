/**
 * The driver of one attempt: sends the request, brings bytes and time to the gate, and ends in exactly one of `released`
 * and `rejected`. Owns the attempt's timers and its upstream call, and ends both.
 */

import type { Clock } from "../clock.js";
import type { Failure } from "../errors.js";
import * as failures from "../gate/failures.js";
import { deadlineFailure, type GateOutput } from "../gate/gate.js";
import { failureFromHttp } from "../gate/in-band-error.js";
import { Inspector } from "../gate/inspector.js";
import { UsageReader } from "../gate/usage-reader.js";
import type { ResponseHeaders } from "../response-headers.js";
import { isUndecodableBody } from "../upstream/decoding.js";
import { isConnectTimeout } from "../upstream/network-error.js";
import type { UpstreamClient, UpstreamHandler, UpstreamRequest } from "../upstream/upstream.js";
import type { AttemptObserver, AttemptReleased, AttemptResult, AttemptSpec } from "./attempt-spec.js";
import { AttemptTimers, type AttemptDeadline } from "./attempt-timers.js";
import { ErrorAnswer } from "./error-answer.js";
import { LateCall } from "./late-call.js";
import { ReleasedAttempt } from "./released-attempt.js";

type State =
  | { readonly phase: "waiting" }
  | { readonly phase: "error-answer"; readonly answer: ErrorAnswer }
  | { readonly phase: "gated"; readonly inspector: Inspector }
  | { readonly phase: "released"; readonly released: ReleasedAttempt }
  | { readonly phase: "closed" };

const waiting: State = { phase: "waiting" };
const closed: State = { phase: "closed" };

export class Attempt implements UpstreamHandler {
  readonly #spec: AttemptSpec;
  readonly #clock: Clock;
  readonly #observer: AttemptObserver;
  readonly #timers: AttemptTimers;
  readonly #inspector: Inspector | undefined;
  readonly #call = new LateCall();
  #state: State = waiting;
  #resolve: ((result: AttemptResult) => void) | undefined;
  #connected = false;
  #status = 0;
  #headers: ResponseHeaders | undefined;
  #bytes = 0;
  #holdingSince: number | undefined;

  /** Starts at once. */
  static run(
    spec: AttemptSpec,
    request: UpstreamRequest,
    client: UpstreamClient,
    clock: Clock,
    observer: AttemptObserver,
  ): { attempt: Attempt; result: Promise<AttemptResult> } {
    const attempt = new Attempt(spec, clock, observer);
    const result = new Promise<AttemptResult>((resolve) => {
      attempt.#resolve = resolve;
    });
    attempt.#timers.start(spec.startedAt);
    try {
      attempt.#call.attach(client.send(request, attempt));
    } catch (bug) {
      attempt.#close();
      throw bug;
    }
    return { attempt, result };
  }

  private constructor(spec: AttemptSpec, clock: Clock, observer: AttemptObserver) {
    const { protocol, rules, clocks, maxHeldBytes, onValue, readUsage } = spec;
    this.#spec = spec;
    this.#clock = clock;
    this.#observer = observer;
    this.#inspector =
      rules === undefined ? undefined : new Inspector(protocol, rules, maxHeldBytes, onValue, readUsage);
    this.#timers = new AttemptTimers(clocks, clock, this);
  }

  /** Ends the attempt before commit: the client left. After commit the body's reader does that. */
  abort(failure: Failure): void {
    if (this.#resolve !== undefined) this.#reject(failure);
  }

  /** The answer is read on without its client. */
  get dropping(): boolean {
    return this.#state.phase === "released" && this.#state.released.dropping;
  }

  /** Ends the attempt whatever it is at: the gateway closes. */
  stop(failure: Failure): void {
    if (this.#state.phase === "released") this.#state.released.stop(failure);
    else this.abort(failure);
  }

  onConnected(): void {
    this.#connected = true;
    this.#timers.connected();
  }

  onHead(status: number, headers: ResponseHeaders): void {
    if (this.#state.phase !== "waiting") return;
    this.#connected = true;
    this.#status = status;
    this.#headers = headers;
    this.#timers.touch();
    if (status < 200 || status > 299) this.#startErrorAnswer();
    else if (this.#inspector === undefined) this.#relay(headers);
    else if (isEncoded(headers)) this.#reject(failures.invalidBody());
    else this.#state = { phase: "gated", inspector: this.#inspector };
  }

  onData(chunk: Uint8Array): void {
    const state = this.#state;
    if (state.phase === "released") return state.released.onData(chunk);
    this.#bytes += chunk.length;
    this.#timers.touch();
    if (state.phase === "gated") return this.#hold(state.inspector, chunk);
    if (state.phase === "error-answer" && state.answer.push(chunk)) this.#rejectErrorAnswer(state.answer);
  }

  onEnd(): void {
    const state = this.#state;
    switch (state.phase) {
      case "error-answer":
        return this.#rejectErrorAnswer(state.answer);
      case "gated":
        this.#apply(state.inspector.end());
        // Released at its end: only then is there a body, which ends, too.
        if (this.#state.phase === "released") this.#state.released.onEnd();
        return;
      case "released":
        return state.released.onEnd();
    }
  }

  onError(cause: Error): void {
    const state = this.#state;
    switch (state.phase) {
      case "waiting":
        return this.#reject(this.#unanswered(cause));
      case "error-answer":
        return this.#rejectErrorAnswer(state.answer);
      case "gated":
        if (isUndecodableBody(cause)) return this.#reject({ ...failures.invalidBody(), cause });
        return this.#apply(state.inspector.error(cause));
      case "released":
        return state.released.onError(cause);
    }
  }

  /** The HTTP client and the system have connect timeouts of their own, which may come first. */
  #unanswered(cause: Error): Failure {
    if (this.#connected || !isConnectTimeout(cause)) return failures.networkFailure(cause, this.#connected);
    return { ...failures.connectTimeout(this.#spec.clocks.connectTimeoutMs), cause };
  }

  onDeadline(deadline: AttemptDeadline, timeoutMs: number): void {
    if (deadline === "connect") return this.#reject(failures.connectTimeout(timeoutMs));
    const state = this.#state;
    switch (state.phase) {
      case "waiting":
        return this.#reject(deadlineFailure(deadline, timeoutMs));
      case "error-answer":
        return this.#rejectErrorAnswer(state.answer);
      case "gated":
        return this.#apply(state.inspector.deadline(deadline, timeoutMs));
      case "released":
        return state.released.onDeadline(deadline, timeoutMs);
    }
  }

  #hold(inspector: Inspector, chunk: Uint8Array): void {
    this.#holdingSince ??= this.#clock.now();
    const output = inspector.push(chunk);
    if (inspector.holdsEvent) this.#timers.holdsEvent();
    this.#apply(output);
  }

  /** Carries out what the machine says before commit. */
  #apply(output: GateOutput): void {
    const inspector = this.#inspector;
    switch (output.type) {
      case "hold":
        // The one place where the machine waits for a frame with a clock of its own.
        if (inspector?.phase === "awaiting-detail") this.#timers.awaitDetail();
        return;
      case "release":
        if (output.overflow !== undefined) this.#observer.onOverflow(output.overflow, inspector?.heldBytes ?? 0, true);
        return this.#release(output.reason, inspector?.takeHeld() ?? [], undefined);
      case "reject":
        if (output.overflow !== undefined) this.#observer.onOverflow(output.overflow, inspector?.heldBytes ?? 0, false);
        return this.#reject(output.failure);
    }
  }

  #startErrorAnswer(): void {
    this.#state = { phase: "error-answer", answer: new ErrorAnswer() };
    // The status is known; its body may take no longer than the detail of an in-band failure.
    this.#timers.awaitDetail();
  }

  #rejectErrorAnswer(answer: ErrorAnswer): void {
    const status = this.#status;
    // A redirect is never followed: the credentials would go with it.
    this.#reject(status < 400 ? failures.invalidBody() : failureFromHttp(status, answer.text(), { flatErrors: true }));
  }

  /** Ungated. */
  #relay(headers: ResponseHeaders): void {
    const { protocol, maxHeldBytes, readUsage, onValue } = this.#spec;
    const isRead = (readUsage || onValue !== undefined) && !isEncoded(headers);
    this.#release("ungated", [], isRead ? new UsageReader(protocol, maxHeldBytes, onValue) : undefined);
  }

  #release(reason: string, held: Uint8Array[], usageReader: UsageReader | undefined): void {
    const inspector = this.#inspector;
    this.#timers.release();
    const parts = {
      spec: this.#spec,
      clock: this.#clock,
      timers: this.#timers,
      call: this.#call,
      observer: this.#observer,
      inspector,
      usageReader,
    };
    const released = new ReleasedAttempt(parts, held, this.#bytes);
    this.#state = { phase: "released", released };
    this.#call.deliverTo(released);
    const result: AttemptReleased = {
      type: "released",
      status: this.#status,
      headers: this.#headers ?? {},
      body: released.body,
      jsonBody: inspector === undefined || inspector.jsonBody,
      reason,
      ttftMs: this.#clock.now() - this.#spec.startedAt,
      holdMs: this.#holdMs(),
      heldBytes: inspector?.heldBytes ?? 0,
    };
    this.#headers = undefined;
    this.#observer.onRelease(result);
    this.#settle(result);
    released.recordReleased();
  }

  #reject(failure: Failure): void {
    if (this.#resolve === undefined) return;
    this.#call.abort();
    this.#close();
    this.#settle({
      type: "rejected",
      failure,
      headers: this.#headers,
      durationMs: this.#clock.now() - this.#spec.startedAt,
      holdMs: this.#holdMs(),
      usage: this.#inspector?.usage,
    });
  }

  /** Since the first held byte. */
  #holdMs(): number {
    return this.#holdingSince === undefined ? 0 : this.#clock.now() - this.#holdingSince;
  }

  #settle(result: AttemptResult): void {
    const resolve = this.#resolve;
    this.#resolve = undefined;
    resolve?.(result);
  }

  #close(): void {
    this.#state = closed;
    this.#timers.stop();
    this.#inspector?.close();
  }
}

/** The bytes are compressed although `identity` was asked for: nothing in them can be judged. */
function isEncoded(headers: ResponseHeaders): boolean {
  const encoding = headers["content-encoding"];
  return encoding !== undefined && encoding !== "" && String(encoding).toLowerCase() !== "identity";
}
