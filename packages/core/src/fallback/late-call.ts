/** An upstream call to which handler calls may come before there is one: what they ask of it is done once it is there. */

import type { UpstreamCall, UpstreamHandler } from "../upstream/upstream.js";

export class LateCall implements UpstreamCall {
  #call: UpstreamCall | undefined;
  #aborted = false;
  #paused = false;

  attach(call: UpstreamCall): void {
    this.#call = call;
    if (this.#aborted) call.abort();
    else if (this.#paused) call.pause();
  }

  abort(): void {
    this.#aborted = true;
    this.#call?.abort();
  }

  pause(): void {
    this.#paused = true;
    this.#call?.pause();
  }

  deliverTo(handler: UpstreamHandler): void {
    this.#call?.deliverTo?.(handler);
  }

  resume(): void {
    this.#paused = false;
    this.#call?.resume();
  }
}
