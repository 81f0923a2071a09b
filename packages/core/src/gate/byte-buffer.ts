/** Bytes kept between chunks, and their text. */

const nothing: Uint8Array = new Uint8Array(0);
const firstCapacity = 256;
/** A larger storage is dropped when cleared, so that one large frame does not stay in memory for the whole stream. */
const keptCapacity = 65_536;

/**
 * A growing copy. One storage that doubles, not a list of pieces: a stream that arrives byte by byte would otherwise cost
 * an object a byte, far more than what is counted. Appending stays linear.
 */
export class ByteBuffer {
  #storage: Uint8Array = nothing;
  #length: number = 0;

  get length(): number {
    return this.#length;
  }

  /** Valid up to `length`, and until the next `append` or `clear`. */
  get bytes(): Uint8Array {
    return this.#storage;
  }

  append(source: Uint8Array, start: number, end: number): void {
    const needed = this.#length + end - start;
    if (needed > this.#storage.length) this.#grow(needed);
    // `subarray` is a view, and `set` copies: the source may be a view on a large network read, and may be reused.
    this.#storage.set(source.subarray(start, end), this.#length);
    this.#length = needed;
  }

  appendByte(byte: number): void {
    if (this.#length === this.#storage.length) this.#grow(this.#length + 1);
    this.#storage[this.#length] = byte;
    this.#length += 1;
  }

  text(): string {
    return decodeText(this.#storage, 0, this.#length);
  }

  clear(): void {
    this.#length = 0;
    if (this.#storage.length > keptCapacity) this.#storage = nothing;
  }

  #grow(needed: number): void {
    const larger = new Uint8Array(Math.max(needed, this.#storage.length * 2, firstCapacity));
    larger.set(this.#storage.subarray(0, this.#length));
    this.#storage = larger;
  }
}

// Only whole lines and values are decoded, so one decoder without state serves every stream. A byte order mark is data:
// the one that may be dropped, at the start of the stream, is dropped before.
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

interface NativeText extends Uint8Array {
  toString(encoding?: "utf8", start?: number, end?: number): string;
}

const native = (globalThis as { readonly Buffer?: unknown }).Buffer as (new () => NativeText) | undefined;

/** Invalid UTF-8 becomes U+FFFD. */
export function decodeText(bytes: Uint8Array, start: number, end: number): string {
  if (start === end) return "";
  // The same at half the cost: no view is made.
  if (native !== undefined && bytes instanceof native) return bytes.toString("utf8", start, end);
  return decoder.decode(bytes.subarray(start, end));
}
