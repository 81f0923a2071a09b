/** Reads the usage of an answer that is relayed ungated. Changes nothing, delays nothing. */

import type { Frame, FrameDecoder } from "./frame.js";
import { Judge, type ValueListener } from "./judge.js";
import type { GateProtocol } from "./protocols/protocol.js";
import type { TokenUsage } from "./usage.js";

export class UsageReader {
  readonly #judge: Judge;
  readonly #maxBytes: number;
  #decoder: FrameDecoder | undefined;

  /** @param maxBytes of a body (or an event) that is not complete yet: a longer one goes by unread */
  constructor(protocol: GateProtocol, maxBytes: number, onValue?: ValueListener) {
    this.#judge = new Judge(protocol, onValue);
    this.#decoder = protocol.createDecoder();
    this.#maxBytes = maxBytes;
  }

  get usage(): TokenUsage | undefined {
    return this.#judge.usage;
  }
  /** The model that answers, in the provider's words. */
  get responseModel(): string | undefined {
    return this.#judge.responseModel;
  }

  push(chunk: Uint8Array): void {
    if (this.#decoder === undefined) return;
    this.#read(this.#decoder.push(chunk));
    if (this.#decoder.pendingBytes > this.#maxBytes) this.#decoder = undefined;
  }

  end(): void {
    if (this.#decoder !== undefined) this.#read(this.#decoder.end());
    this.#decoder = undefined;
  }

  #read(frames: readonly Frame[]): void {
    for (const frame of frames) this.#judge.judge(frame, false);
  }
}
