/** Collects the chunks of one tick, so that they are written at once. */

const emptied: Uint8Array[] = [];

/**
 * One read of the upstream socket brings many chunks in the same tick; written one by one, each pays for its own
 * framing. A chunk that comes alone waits for nothing but the end of the current tick.
 */
export class TickBatch {
  readonly #flush: (bytes: Uint8Array) => void;
  #chunks: Uint8Array[] = emptied;
  #bytes = 0;
  #scheduled = false;

  /** @param flush called at the end of a tick in which chunks came */
  constructor(flush: (bytes: Uint8Array) => void) {
    this.#flush = flush;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(chunk: Uint8Array): void {
    if (this.#bytes === 0) this.#chunks = [chunk];
    else this.#chunks.push(chunk);
    this.#bytes += chunk.byteLength;
    if (this.#scheduled) return;
    this.#scheduled = true;
    process.nextTick(flushBatch, this);
  }

  /** What was collected; the batch is empty afterwards. */
  take(): Uint8Array | undefined {
    if (this.#bytes === 0) return undefined;
    const [first] = this.#chunks;
    const bytes = this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks, this.#bytes);
    this.#chunks = emptied;
    this.#bytes = 0;
    return bytes;
  }

  /** @internal */
  endTick(): void {
    this.#scheduled = false;
    const bytes = this.take();
    if (bytes !== undefined) this.#flush(bytes);
  }
}

/** A function of the module, so that no closure is made a tick. */
function flushBatch(batch: TickBatch): void {
  batch.endTick();
}
