/** Whether the client is still there. */

import type { ServerResponse } from "node:http";
import type { ServerHttp2Stream } from "node:http2";
import type { ClientSignal } from "../request.js";
import { http2StreamOf } from "./break-connection.js";

/** What has to end when the connection does. */
export interface Closable {
  close(): void;
}

type Listener = () => void;

/**
 * Watches one response. The response is what is watched, never the request: a request is closed as soon as its body is
 * read, with the client still waiting. It is the signal of its request itself, which aborts when the client leaves
 * before it was answered: an `AbortSignal` costs more than all else that is made for a request here.
 */
export class ClientConnection implements ClientSignal {
  readonly #res: ServerResponse;
  /** Of a response over HTTP/2, which answers for it. */
  readonly #stream: ServerHttp2Stream | undefined;
  #closed = false;
  #aborted = false;
  #answered = false;
  /** Nearly always there is none or one, which is kept without a list. */
  #listener: Listener | undefined;
  #moreListeners: Listener[] | undefined;
  #controller: AbortController | undefined;
  #closable: Closable | undefined;

  constructor(res: ServerResponse) {
    this.#res = res;
    this.#stream = http2StreamOf(res);
    // A write to a connection that is gone is reported here; "close" tells the same.
    res.on("error", ignore);
    this.#closed = this.#stream === undefined && res.closed;
    if (this.gone) this.#aborted = true;
    else res.on("close", () => this.#onClose());
  }

  /** The client left before it was answered. */
  get aborted(): boolean {
    return this.#aborted;
  }

  /** Called at most once; a second call with the same listener changes nothing. */
  addEventListener(_type: "abort", listener: Listener): void {
    if (this.#aborted || this.#listener === listener || this.#moreListeners?.includes(listener) === true) return;
    if (this.#listener === undefined) this.#listener = listener;
    else (this.#moreListeners ??= []).push(listener);
  }

  removeEventListener(_type: "abort", listener: Listener): void {
    if (this.#listener === listener) this.#listener = this.#moreListeners?.shift();
    else this.#moreListeners = this.#moreListeners?.filter((one) => one !== listener);
  }

  toAbortSignal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort();
    }
    return this.#controller.signal;
  }

  /** Nothing can be sent any more. */
  get gone(): boolean {
    const stream = this.#stream;
    if (stream !== undefined) return stream.destroyed || stream.closed;
    return this.#closed || this.#res.destroyed;
  }

  /** Somebody else has begun the response. The end of one begins it, too, but for HTTP/2. */
  get taken(): boolean {
    return this.#res.headersSent || (this.#stream !== undefined && this.#res.writableEnded);
  }

  /** Our answer has begun. */
  get answered(): boolean {
    return this.#answered;
  }

  /** From here on the connection may close without that being an abort. */
  answer(): void {
    this.#answered = true;
  }

  /** @param closable closed once, when the connection is gone for whatever reason */
  onClose(closable: Closable): void {
    this.#closable = closable;
  }

  #onClose(): void {
    this.#closed = true;
    if (!this.#answered) this.#abort();
    this.#closable?.close();
    this.#closable = undefined;
  }

  #abort(): void {
    if (this.#aborted) return;
    this.#aborted = true;
    const first = this.#listener;
    const more = this.#moreListeners;
    this.#listener = undefined;
    this.#moreListeners = undefined;
    first?.();
    for (const listener of more ?? []) listener();
    this.#controller?.abort();
  }
}

function ignore(): void {
  // Reported by "close".
}
