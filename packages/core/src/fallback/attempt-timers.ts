/** The clocks of one attempt as they run: what arms, moves and ends each. */

import type { Clock } from "../clock.js";
import type { GateDeadline } from "../gate/gate.js";
import type { AttemptClocks } from "./attempt-clocks.js";
import { Deadlines, type DeadlineListener } from "./deadlines.js";

export type AttemptDeadline = GateDeadline | "connect";

export class AttemptTimers implements DeadlineListener<AttemptDeadline> {
  readonly #clocks: AttemptClocks;
  readonly #clock: Clock;
  readonly #listener: DeadlineListener<AttemptDeadline>;
  readonly #deadlines: Deadlines<AttemptDeadline>;
  /** When the last byte came, on the clock. */
  #touchedAt = 0;
  #holdArmed = false;
  #detailArmed = false;
  #pausedSince: number | undefined;
  #pausedMs = 0;
  #stopped = false;

  constructor(clocks: AttemptClocks, clock: Clock, listener: DeadlineListener<AttemptDeadline>) {
    this.#clocks = clocks;
    this.#clock = clock;
    this.#listener = listener;
    this.#deadlines = new Deadlines<AttemptDeadline>(clock, this);
  }

  /** How long the client took nothing, in ms. */
  get pausedMs(): number {
    return this.#pausedMs;
  }

  /** @param startedAt of the attempt; connecting begins now */
  start(startedAt: number): void {
    const { connectTimeoutMs, ttftTimeoutMs, requestTimeoutMs, total } = this.#clocks;
    this.#in("connect", connectTimeoutMs);
    if (ttftTimeoutMs !== undefined) this.#deadlines.set("ttft", startedAt + ttftTimeoutMs, ttftTimeoutMs);
    this.#deadlines.set("request", startedAt + requestTimeoutMs, requestTimeoutMs);
    if (total !== undefined) this.#deadlines.set("total", total.at, total.timeoutMs);
    this.#armIdle();
  }

  connected(): void {
    this.#deadlines.clear("connect");
  }

  /** Any byte puts the idle clock off: it is looked at when it fires, since a stream brings thousands. */
  touch(): void {
    this.#touchedAt = this.#clock.now();
  }

  /** While the client takes nothing, the provider's silence is no fault of its own. */
  #armIdle(): void {
    const { idleTimeoutMs } = this.#clocks;
    this.touch();
    if (idleTimeoutMs === undefined || this.#pausedSince !== undefined || this.#stopped) return;
    this.#deadlines.set("idle", this.#touchedAt + idleTimeoutMs, idleTimeoutMs);
  }

  onDeadline(deadline: AttemptDeadline, timeoutMs: number): void {
    const until = this.#touchedAt + timeoutMs;
    if (deadline === "idle" && until > this.#clock.now()) this.#deadlines.set("idle", until, timeoutMs);
    else this.#listener.onDeadline(deadline, timeoutMs);
  }

  /** An event is held: the first one starts the hold clock. A provider that queues a request may send comments for minutes. */
  holdsEvent(): void {
    const { maxHoldMs, ttftTimeoutMs } = this.#clocks;
    if (this.#holdArmed || maxHoldMs === 0 || ttftTimeoutMs !== undefined) return;
    this.#holdArmed = true;
    this.#in("hold", maxHoldMs);
  }

  /** The reason of a failure is awaited. Once: a provider that only keeps the connection alive does not move it. */
  awaitDetail(): void {
    if (this.#detailArmed) return;
    this.#detailArmed = true;
    this.#in("detail", this.#clocks.failureDetailTimeoutMs);
  }

  release(): void {
    this.#deadlines.keep("idle", this.#clocks.requestTimeoutEndsAtRelease ? "idle" : "request");
  }

  /** The client takes nothing for the moment. */
  pause(): void {
    this.#pausedSince ??= this.#clock.now();
    this.#deadlines.clear("idle");
  }

  resume(): void {
    if (this.#pausedSince === undefined) return;
    this.#pausedMs += this.#clock.now() - this.#pausedSince;
    this.#pausedSince = undefined;
    this.#armIdle();
  }

  /** Ends all, for good. */
  stop(): void {
    this.#stopped = true;
    this.#deadlines.stop();
  }

  #in(deadline: AttemptDeadline, timeoutMs: number): void {
    this.#deadlines.set(deadline, this.#clock.now() + timeoutMs, timeoutMs);
  }
}
