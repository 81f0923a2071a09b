/** What is held, in order. */

/** Chunks below this share a block, and a block holds this many bytes. */
const smallChunk = 1_024;
const blockBytes = 4_096;

/**
 * Chunks as they came, but that small ones are gathered: a stream that arrives byte by byte would otherwise cost an object
 * a byte, far more than what is counted.
 */
export class HeldBytes {
  #pieces: Uint8Array[] = [];
  /** The storage of the last piece, where that is a block. */
  #block: Uint8Array | undefined;
  #used = 0;

  /** The chunk itself. Until `settle` it may be part of a larger read. */
  push(chunk: Uint8Array): void {
    this.#pieces.push(chunk);
  }

  /** The last chunk stays: it must not pin what it was cut from. */
  settle(): void {
    const chunk = this.#pieces.pop();
    if (chunk === undefined) return;
    if (chunk.length >= smallChunk) {
      this.#block = undefined;
      this.#pieces.push(chunk.length * 2 < chunk.buffer.byteLength ? new Uint8Array(chunk) : chunk);
      return;
    }
    if (this.#block === undefined || this.#used + chunk.length > blockBytes) {
      this.#block = new Uint8Array(blockBytes);
      this.#used = 0;
    } else {
      this.#pieces.pop();
    }
    this.#block.set(chunk, this.#used);
    this.#used += chunk.length;
    this.#pieces.push(this.#block.subarray(0, this.#used));
  }

  /** Everything, once. */
  take(): Uint8Array[] {
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#block = undefined;
    return pieces;
  }

  /** The last `length` bytes but for the very last `without`, a piece at a time. */
  tail(length: number, without: number = 0): Uint8Array[] {
    const parts: Uint8Array[] = [];
    let left = length;
    let skip = without;
    for (let index = this.#pieces.length - 1; index >= 0 && left > 0; index -= 1) {
      const piece = this.#pieces[index] as Uint8Array;
      const end = Math.max(0, piece.length - skip);
      skip = Math.max(0, skip - piece.length);
      const start = Math.max(0, piece.length - left);
      left -= piece.length;
      if (start < end) parts.unshift(piece.subarray(start, end));
    }
    return parts;
  }
}
