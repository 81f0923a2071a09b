/** A released body as what stands in `ctx.body`: sent by itself, or read as a stream by whoever wraps it. */

import type { ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { BodyPump, breakConnection, ResponseOutlet } from "@first-chunk/core";
import type { ClientConnection, Clock, Closable, Outlet, ReleasedBody } from "@first-chunk/core";

export interface ReleasedStreamOptions {
  readonly body: ReleasedBody;
  readonly res: ServerResponse;
  readonly client: ClientConnection;
  /** In ms. */
  readonly writeStallTimeoutMs: number;
  readonly clock: Clock;
}

/**
 * Left alone it goes into the response by `send()`, without a second buffer, which would cost as much as the relay itself.
 * For everybody else, such as a middleware that wraps the body, it is the `Readable` that it looks like.
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

  /** Writes it into the response. False, and nothing is done, where somebody reads it as a stream. */
  send(): boolean {
    const isUntouched =
      this.#pump === undefined &&
      !this.destroyed &&
      this.readableFlowing === null &&
      this.listenerCount("readable") === 0;
    if (!isUntouched) return false;
    this.#pump = this.#pumpTo(new DirectOutlet(this, this.#options.res));
    this.#pump.start();
    return true;
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

  #pumpTo(outlet: Outlet): BodyPump {
    const { body, res, writeStallTimeoutMs, clock } = this.#options;
    return new BodyPump({ body, outlet, res, writeStallTimeoutMs, clock });
  }
}

/** Past the stream, which ends without ever having held a byte. */
class DirectOutlet extends ResponseOutlet {
  readonly #stream: Readable;

  constructor(stream: Readable, res: ServerResponse) {
    super(res);
    this.#stream = stream;
  }

  override finish(): void {
    super.finish();
    this.#stream.push(null);
    // Nobody reads it, so it would not tell.
    this.#stream.emit("end");
    this.#stream.destroy();
  }
}

/** For readers other than the response: through the buffer of the stream. */
class BufferOutlet implements Outlet {
  readonly #stream: Readable;
  readonly #res: ServerResponse;
  #broken = false;

  constructor(stream: Readable, res: ServerResponse) {
    this.#stream = stream;
    this.#res = res;
  }

  write(bytes: Uint8Array): boolean {
    return this.#stream.push(bytes);
  }

  finish(): void {
    this.#stream.push(null);
  }

  fail(): void {
    this.#broken = true;
    this.wasRead();
  }

  /** The stream itself neither ends nor errs: Koa would end the response, or report a failure that is known. */
  wasRead(): void {
    if (!this.#broken || this.#stream.readableLength > 0) return;
    this.#broken = false;
    breakConnection(this.#res);
  }
}
