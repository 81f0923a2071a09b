/** A source on a tap, and what drives a gate over it. */

import { gateStream, type GateStreamOptions, type GateStreamResult } from "../../src/gate/gate-stream.js";
import { anthropicHealthy, ManualClock } from "../../src/testing/index.js";
import { bytesOf } from "../fixtures/healthy.js";

export const healthy = anthropicHealthy();
export const anthropicOptions = { protocol: "anthropic-messages" } as const;

/** A source that gives out what it is told to, when it is told to. */
export class Tap implements AsyncIterable<Uint8Array> {
  #results: (Promise<IteratorResult<Uint8Array>> | "stalled")[] = [];
  #waiting: ((result: IteratorResult<Uint8Array> | Promise<IteratorResult<Uint8Array>>) => void) | undefined;
  reads = 0;
  returned = 0;
  /** Whether `return()` settles. */
  settles = true;

  give(...texts: string[]): this {
    for (const text of texts) this.#add(Promise.resolve({ done: false, value: bytesOf(text) }));
    return this;
  }
  end(): this {
    return this.#add(Promise.resolve({ done: true, value: undefined }));
  }
  break(cause: unknown): this {
    const broken = Promise.reject<IteratorResult<Uint8Array>>(cause);
    broken.catch(() => undefined);
    return this.#add(broken);
  }
  #add(result: Promise<IteratorResult<Uint8Array>>): this {
    if (this.#waiting === undefined) this.#results.push(result);
    else this.#waiting(result);
    this.#waiting = undefined;
    return this;
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    return {
      next: () => {
        this.reads += 1;
        const result = this.#results.shift();
        if (result !== undefined && result !== "stalled") return result;
        return new Promise((resolve) => (this.#waiting = resolve));
      },
      return: () => {
        this.returned += 1;
        return this.settles ? Promise.resolve({ done: true, value: undefined }) : new Promise(() => undefined);
      },
    };
  }
}

export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export async function rejectionOf(source: AsyncIterable<Uint8Array>, options: GateStreamOptions): Promise<unknown> {
  const result = await gateStream(source, options);
  return result.status === "rejected" ? result.error.failure : result.status;
}

export async function bodyOf(
  result: GateStreamResult | Promise<GateStreamResult>,
): Promise<AsyncIterator<Uint8Array> & AsyncIterable<Uint8Array>> {
  const settled = await result;
  if (settled.status === "rejected") throw settled.error;
  return settled.body as AsyncIterator<Uint8Array> & AsyncIterable<Uint8Array>;
}

export async function read(body: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const part of body) parts.push(part);
  return Buffer.concat(parts).toString();
}

/** A released stream of which the preamble and one delta have come and were read. */
export async function released(options: Partial<GateStreamOptions> = {}) {
  const clock = new ManualClock();
  const tap = new Tap().give(...healthy.slice(0, 4));
  const body = await bodyOf(gateStream(tap, { ...anthropicOptions, clock, ...options }));
  let length = 0;
  while (length < healthy.slice(0, 4).join("").length) length += ((await body.next()).value as Uint8Array).length;
  return { clock, tap, body };
}
