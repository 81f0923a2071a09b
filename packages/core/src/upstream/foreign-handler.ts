/** A call as a dispatcher sees it that was handed in: the style that undici 7 takes beside its own, and undici 8 alone. */

import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import type { UndiciCall } from "./call.js";
import { plainHeaders } from "./plain-headers.js";

export class ForeignHandler implements Dispatcher.DispatchHandler {
  readonly #call: UndiciCall;

  constructor(call: UndiciCall) {
    this.#call = call;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#call.start(controller);
  }

  onResponseStarted(): void {
    this.#call.onResponseStarted();
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (!this.#call.awaits(status)) return;
    // Views on the whole read in which the head came, one for each name and value: 3 KiB for as long as the stream lasts.
    controller.rawHeaders = null;
    this.#call.head(status, plainHeaders(headers));
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#call.take(chunk);
  }

  onResponseEnd(): void {
    this.#call.onComplete();
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#call.onError(error);
  }
}
