/** Collects the body of a non-2xx answer, as far as an error message needs it. */

import { concatBytes } from "../gate/byte-search.js";

/** Most bytes read of an error body. Providers send a few hundred. */
const maxBytes = 65_536;

export class ErrorAnswer {
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;

  /** True: enough was read. */
  push(chunk: Uint8Array): boolean {
    this.#chunks.push(new Uint8Array(chunk.subarray(0, maxBytes - this.#bytes)));
    this.#bytes += chunk.length;
    return this.#bytes >= maxBytes;
  }

  text(): string {
    return new TextDecoder().decode(concatBytes(this.#chunks));
  }
}
