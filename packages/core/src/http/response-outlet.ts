/** A `node:http` response (HTTP/1, or HTTP/2 through its compatibility API) as the outlet of a body. */

import type { ServerResponse } from "node:http";
import type { Drainable, Outlet } from "./body-pump.js";
import { breakConnection } from "./break-connection.js";
import { bytesWaiting } from "./write-stall.js";

export class ResponseOutlet implements Outlet {
  readonly #res: ServerResponse;
  #listens = false;

  constructor(res: ServerResponse) {
    this.#res = res;
  }

  get idle(): boolean {
    return bytesWaiting(this.#res) === 0;
  }

  write(bytes: Uint8Array, pump: Drainable): boolean {
    const more = this.#res.write(bytes);
    flush(this.#res);
    if (!more && !this.#listens) {
      this.#listens = true;
      // One listener for the rest of the response: `compression` moves it to its own stream and cannot take it back.
      this.#res.on("drain", () => pump.drained());
    }
    return more;
  }

  finish(): void {
    this.#res.end();
  }

  fail(): void {
    breakConnection(this.#res);
  }
}

/** `compression` adds `flush()`, and without it keeps an event until its buffer is full. */
export function flush(res: ServerResponse & { flush?: () => void }): void {
  if (typeof res.flush === "function") res.flush();
}
