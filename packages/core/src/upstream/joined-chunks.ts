/** Chunks that are handed on as one. */

const nothing: Uint8Array[] = [];

/**
 * Small copies are slices of a block: with a block for each, the allocator and the garbage collector cost more than the
 * copying. Whoever keeps a slice keeps its block, as whoever keeps a chunk keeps the read that it is a view on.
 */
const blockBytes = 65_536;
let block: Buffer = Buffer.allocUnsafeSlow(blockBytes);
let used = 0;

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
    const taken = this.#chunks.length === 1 ? (first as Uint8Array) : join(this.#chunks, this.#bytes);
    this.clear();
    return taken;
  }

  clear(): void {
    this.#chunks = nothing;
    this.#bytes = 0;
  }
}

function join(chunks: readonly Uint8Array[], bytes: number): Uint8Array {
  if (bytes > blockBytes / 4) return Buffer.concat(chunks, bytes);
  if (used + bytes > blockBytes) {
    block = Buffer.allocUnsafeSlow(blockBytes);
    used = 0;
  }
  const start = used;
  for (const chunk of chunks) {
    block.set(chunk, used);
    used += chunk.length;
  }
  return block.subarray(start, used);
}
