/**
 * Reads a released body by iterating. No generator: one that waits for a silent provider cannot be left, and what is
 * left must be aborted at once.
 */

import { GatewayError } from "../errors.js";
import type { BodyEnd, BodySink, ReleasedBody } from "../events.js";
import { clientAbort } from "../gate/failures.js";

type Result = IteratorResult<Uint8Array, undefined>;

interface Waiting {
  readonly resolve: (result: Result) => void;
  readonly reject: (error: GatewayError) => void;
}

const done: Result = { done: true, value: undefined };

/** A sink that is read by pulling. Asks for a pause where nobody waits for the next chunk. */
export class BodyReader implements BodySink, AsyncIterator<Uint8Array, undefined> {
  readonly #body: ReleasedBody;
  #chunks: Uint8Array[] = [];
  #waiting: Waiting[] = [];
  #end: BodyEnd | undefined;

  constructor(body: ReleasedBody) {
    this.#body = body;
  }

  write(chunk: Uint8Array): boolean {
    const next = this.#waiting.shift();
    if (next === undefined) this.#chunks.push(chunk);
    else next.resolve({ done: false, value: chunk });
    return this.#waiting.length > 0;
  }

  end(end: BodyEnd): void {
    this.#end = end;
    for (const waiting of this.#waiting.splice(0)) this.#settle(waiting);
  }

  /** The body was cancelled from elsewhere. What waits for more must not take that for the end. */
  cancelled(): void {
    this.#chunks = [];
    if (this.#end === undefined) this.end({ type: "fail", failure: clientAbort() });
  }

  next(): Promise<Result> {
    return new Promise((resolve, reject) => {
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) return resolve({ done: false, value: chunk });
      if (this.#end !== undefined) return this.#settle({ resolve, reject });
      this.#waiting.push({ resolve, reject });
      this.#body.resume();
    });
  }

  return(): Promise<Result> {
    this.#chunks = [];
    this.#end ??= { type: "finish" };
    for (const { resolve } of this.#waiting.splice(0)) resolve(done);
    this.#body.cancel();
    return Promise.resolve(done);
  }

  /** A failure is thrown once; after it the iterator is at its end. */
  #settle({ resolve, reject }: Waiting): void {
    const end = this.#end as BodyEnd;
    if (end.type === "finish") return resolve(done);
    this.#end = { type: "finish" };
    reject(new GatewayError(end.failure));
  }
}
