/** The two ways of a released body out of its stream: at once into the response, or through the buffer of the stream. */

import type { ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { breakConnection, ResponseOutlet } from "@first-chunk/core";
import type { Outlet } from "@first-chunk/core";

/** Past the stream, which ends without ever having held a byte. */
export class DirectOutlet extends ResponseOutlet {
  readonly #stream: Readable;
  readonly #res: ServerResponse;
  readonly #endsResponse: boolean;

  /** @param endsResponse false: the reader ends the response when the stream ends, as `pipeline()` does */
  constructor(stream: Readable, res: ServerResponse, endsResponse: boolean) {
    super(res);
    this.#stream = stream;
    this.#res = res;
    this.#endsResponse = endsResponse;
  }

  override finish(last: Uint8Array | undefined): void {
    if (this.#endsResponse) super.finish(last);
    else if (last !== undefined) this.#res.write(last);
    this.#stream.push(null);
    // Nobody reads it, so it would not tell. Within this call, so that the last bytes and the end of the response go out in
    // one write to the socket.
    this.#stream.emit("end");
    this.#stream.destroy();
  }
}

/** For readers other than the response. */
export class BufferOutlet implements Outlet {
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

  finish(last: Uint8Array | undefined): void {
    if (last !== undefined) this.#stream.push(last);
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
