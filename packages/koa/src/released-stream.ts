/** A released body as the stream that Koa sends to the client. */

import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { BodyPump } from "@first-chunk/core";
import type { ClientConnection, Clock, Closable, Outlet, ReleasedBody } from "@first-chunk/core";
import { BufferOutlet, DirectOutlet } from "./stream-outlets.js";

export interface ReleasedStreamOptions {
  readonly body: ReleasedBody;
  readonly res: ServerResponse;
  readonly client: ClientConnection;
  /** In ms. */
  readonly writeStallTimeoutMs: number;
  readonly clock: Clock;
}

/**
 * Koa pipes it into the response, and then the bytes go there at once: no second buffer, which would cost as much as the
 * relay itself. For everybody else, such as a middleware that wraps the body, it is the `Readable` that it looks like.
 *
 * Not `Readable.from(generator)`: its `finally` does not run when the client leaves while the provider is silent, and
 * the provider would go on generating. No `PassThrough` either: a second buffer would hide the back-pressure.
 */
export class ReleasedStream extends Readable implements Closable {
  readonly #options: ReleasedStreamOptions;
  /** Made when somebody begins to read. */
  #pump: BodyPump | undefined;
  /** Where it is read as a stream. */
  #buffer: BufferOutlet | undefined;

  constructor(options: ReleasedStreamOptions) {
    super();
    this.#options = options;
    options.client.onClose(this);
    // Koa 2 leaves a client waiting when the stream of its answer breaks.
    this.on("error", () => options.res.destroy());
  }

  /** The connection is gone. */
  close(): void {
    if (this.#pump === undefined) this.#options.body.cancel();
    else this.#pump.close();
    this.destroy();
  }

  override pipe<T extends NodeJS.WritableStream>(destination: T, options?: { end?: boolean }): T {
    const { res } = this.#options;
    if (!Object.is(destination, res) || !this.#untouched) return super.pipe(destination, options);
    this.#pump = this.#pumpTo(new DirectOutlet(this, res, options?.end !== false));
    // Not at once: the caller has yet to listen for the end.
    process.nextTick(start, this.#pump);
    return destination;
  }

  /** Called by Node when a reader wants more; the first call comes when it begins. */
  override _read(): void {
    if (this.#pump !== undefined) return this.#pump.drained();
    this.#buffer = new BufferOutlet(this, this.#options.res);
    this.#pump = this.#pumpTo(this.#buffer);
    this.#pump.start();
  }

  /** Also called where an outer middleware has replaced the body, or thrown. */
  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    if (this.#pump === undefined) this.#options.body.cancel();
    else this.#pump.cancel("client-abort");
    callback(error);
  }

  /** What this returns has been handed to the reader, so that the last of it is in the response by then. */
  override read(size?: number): unknown {
    const chunk: unknown = super.read(size);
    this.#buffer?.wasRead();
    return chunk;
  }

  /** Nobody else reads it, or has asked to. */
  get #untouched(): boolean {
    return (
      this.#pump === undefined &&
      !this.destroyed &&
      this.readableFlowing === null &&
      this.listenerCount("readable") === 0
    );
  }

  #pumpTo(outlet: Outlet): BodyPump {
    const { body, res, writeStallTimeoutMs, clock } = this.#options;
    return new BodyPump({ body, outlet, res, writeStallTimeoutMs, clock });
  }
}

function start(pump: BodyPump): void {
  pump.start();
}
