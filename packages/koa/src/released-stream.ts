/** A released body as the stream that Koa pipes to the client. */

import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { BodyPump, breakConnection } from "@first-chunk/core";
import type { ClientConnection, Clock, ReleasedBody } from "@first-chunk/core";

export interface ReleasedStreamOptions {
  readonly body: ReleasedBody;
  readonly res: ServerResponse;
  readonly client: ClientConnection;
  /** In ms. */
  readonly writeStallTimeoutMs: number;
  readonly clock: Clock;
}

/**
 * Not `Readable.from(generator)`: its `finally` does not run when the client leaves while the provider is silent, and
 * the provider would go on generating. No `PassThrough` either: a second buffer would hide the back-pressure.
 */
export class ReleasedStream extends Readable {
  readonly #pump: BodyPump;
  readonly #res: ServerResponse;
  #started = false;
  #broken = false;

  constructor({ body, res, client, writeStallTimeoutMs, clock }: ReleasedStreamOptions) {
    super();
    this.#res = res;
    this.#pump = new BodyPump({
      body,
      outlet: {
        write: (bytes) => this.push(bytes),
        finish: (last) => this.#finish(last),
        fail: () => this.#fail(),
      },
      res,
      writeStallTimeoutMs,
      clock,
    });
    client.onClose(() => {
      this.#pump.close();
      this.destroy();
    });
    // Koa 2 leaves a client waiting when the stream of its answer breaks.
    this.on("error", () => res.destroy());
  }

  /** Called by Node when the consumer wants more; the first call comes when Koa begins to send. */
  override _read(): void {
    if (this.#started) return this.#pump.drained();
    this.#started = true;
    this.#pump.start();
  }

  /** Also called where an outer middleware has replaced the body, or thrown. */
  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#pump.cancel("client-abort");
    callback(error);
  }

  /** What this returns has been handed to the consumer, so that the last of it is in the response by then. */
  override read(size?: number): unknown {
    const chunk: unknown = super.read(size);
    if (this.#broken && this.readableLength === 0) this.#break();
    return chunk;
  }

  #finish(last: Uint8Array | undefined): void {
    if (last !== undefined) this.push(last);
    this.push(null);
  }

  #fail(): void {
    this.#broken = true;
    if (this.readableLength === 0) this.#break();
  }

  /** The stream itself neither ends nor errs here: Koa would end the response, or report a failure that is known. */
  #break(): void {
    this.#broken = false;
    breakConnection(this.#res);
  }
}
