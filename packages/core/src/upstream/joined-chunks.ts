/** Chunks that are handed on as one. */

const nothing: Uint8Array[] = [];

export class JoinedChunks {
  /** Never added to while it is `nothing`, which all share. */
  #chunks: Uint8Array[] = nothing;
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  push(chunk: Uint8Array): void {
    if (this.#bytes === 0) this.#chunks = [chunk];
    else this.#chunks.push(chunk);
    this.#bytes += chunk.length;
  }

  /** Everything since the last time, one chunk as it is, several as a copy. There must be something. */
  take(): Uint8Array {
    const [first] = this.#chunks;
    const taken = this.#chunks.length === 1 ? (first as Uint8Array) : Buffer.concat(this.#chunks, this.#bytes);
    this.clear();
    return taken;
  }

  clear(): void {
    this.#chunks = nothing;
    this.#bytes = 0;
  }
}
