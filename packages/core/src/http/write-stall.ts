/** Finds clients that keep a connection open and take no byte. */

import type { ServerResponse } from "node:http";
import type { Clock, Timer } from "../clock.js";

/** How often the socket is looked at within the timeout; the stall is found at most one part late. */
const looksPerTimeout = 4;

/**
 * Armed while bytes wait for the client. Nothing else ends such a wait: Node has no limit on it, and a paused upstream
 * has none either.
 */
export class WriteStallWatch {
  readonly #res: ServerResponse;
  readonly #timeoutMs: number;
  readonly #clock: Clock;
  readonly #onStall: () => void;
  #timer: Timer | undefined;
  #progressAt = 0;
  #waiting = 0;

  /** @param timeoutMs without any progress, in ms */
  constructor(res: ServerResponse, timeoutMs: number, clock: Clock, onStall: () => void) {
    this.#res = res;
    this.#timeoutMs = timeoutMs;
    this.#clock = clock;
    this.#onStall = onStall;
  }

  arm(): void {
    this.#waiting = bytesWaiting(this.#res);
    if (this.#timer !== undefined) return;
    this.#progressAt = this.#clock.now();
    this.#setTimer();
  }

  disarm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  readonly #look = (): void => {
    const waiting = bytesWaiting(this.#res);
    // Nothing waits, or (pipelining) another response is before this one: not this client's stall.
    if (waiting === 0 || waiting < this.#waiting || this.#res.socket === null) this.#progressAt = this.#clock.now();
    this.#waiting = waiting;
    if (this.#clock.now() - this.#progressAt < this.#timeoutMs) return this.#setTimer();
    this.#timer = undefined;
    this.#onStall();
  };

  #setTimer(): void {
    const now = this.#clock.now();
    const at = Math.min(this.#progressAt + this.#timeoutMs, now + this.#timeoutMs / looksPerTimeout);
    this.#timer = this.#clock.setTimer(at, this.#look);
  }
}

/**
 * Bytes in this process that the client has not taken. A large write counts as whole in `writableLength` until its last
 * byte is gone; the handle knows what is left of it. Node's own socket timeout asks the handle in the same way.
 */
export function bytesWaiting(res: ServerResponse): number {
  const socket = res.socket as { readonly _handle?: { readonly writeQueueSize?: number } | null } | null;
  return res.writableLength + (socket?._handle?.writeQueueSize ?? 0);
}
