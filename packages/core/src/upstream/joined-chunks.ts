/** Chunks that are handed on as one. */

/**
 * Small copies are slices of a block: with a block for each, the allocator and the garbage collector cost more than the
 * copying. Whoever keeps a slice keeps its block, as whoever keeps a chunk keeps the read that it is a view on.
 */
const blockBytes = 65_536;
let block: Buffer = Buffer.allocUnsafeSlow(blockBytes);
let used = 0;

export class JoinedChunks {
  /** Most reads bring one. */
  #first: Uint8Array | undefined;
  #others: Uint8Array[] | undefined;
  #bytes = 0;

  get bytes(): number {
    return this.#bytes;
  }

  push(chunk: Uint8Array): void {
    if (this.#first === undefined) this.#first = chunk;
    else (this.#others ??= []).push(chunk);
    this.#bytes += chunk.length;
  }

  /** Everything since the last time, one chunk as it is, several as a copy. There must be something. */
  take(): Uint8Array {
    const first = this.#first as Uint8Array;
    const taken = this.#others === undefined ? first : join([first, ...this.#others], this.#bytes);
    this.clear();
    return taken;
  }

  clear(): void {
    this.#first = undefined;
    this.#others = undefined;
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
