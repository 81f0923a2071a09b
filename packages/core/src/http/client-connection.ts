/** Whether the client is still there. */

import type { ServerResponse } from "node:http";
import { http2StreamOf } from "./break-connection.js";

/**
 * Watches one response. The response is what is watched, never the request: a request is closed as soon as its body is
 * read, with the client still waiting.
 */
export class ClientConnection {
  readonly #res: ServerResponse;
  readonly #abort = new AbortController();
  #answered = false;
  #onClose: (() => void) | undefined;

  constructor(res: ServerResponse) {
    this.#res = res;
    // A write to a connection that is gone is reported here; "close" tells the same.
    res.on("error", ignore);
    if (this.gone) this.#abort.abort();
    else res.on("close", () => this.#closed());
  }

  /** Aborts when the client leaves before it was answered. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Nothing can be sent any more. */
  get gone(): boolean {
    const { destroyed, closed } = http2StreamOf(this.#res) ?? this.#res;
    return destroyed || closed;
  }

  /** Somebody else has begun the response. */
  get taken(): boolean {
    return this.#res.headersSent || this.#res.writableEnded;
  }

  /** Our answer has begun. */
  get answered(): boolean {
    return this.#answered;
  }

  /** From here on the connection may close without that being an abort. */
  answer(): void {
    this.#answered = true;
  }

  /** @param callback called once, when the connection is gone for whatever reason */
  onClose(callback: () => void): void {
    this.#onClose = callback;
  }

  #closed(): void {
    if (!this.#answered) this.#abort.abort();
    this.#onClose?.();
    this.#onClose = undefined;
  }
}

function ignore(): void {
  // Reported by "close".
}
