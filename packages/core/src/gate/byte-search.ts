/** Finds byte strings in chunks. Native where the runtime has `Buffer`, else a plain scan. No Node types needed. */

interface NativeBytes {
  indexOf(value: Uint8Array): number;
  lastIndexOf(value: Uint8Array): number;
}
interface NativeBuffer {
  from(buffer: ArrayBufferLike, byteOffset: number, length: number): NativeBytes;
}

const native = (globalThis as { readonly Buffer?: NativeBuffer }).Buffer;
const encoder = new TextEncoder();

export class MarkerSearch {
  readonly #markers: readonly Uint8Array[];
  /** Bytes of two neighbouring chunks in which a marker may straddle the border: one less than the longest marker. */
  readonly overlap: number;

  constructor(markers: readonly string[]) {
    this.#markers = markers.map((marker) => encoder.encode(marker));
    this.overlap = Math.max(0, ...this.#markers.map((marker) => marker.length - 1));
  }

  /** Whether any marker stands in the chunk. */
  hits(chunk: Uint8Array): boolean {
    if (native === undefined) return this.#markers.some((marker) => scan(chunk, marker));
    const bytes = native.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    for (const marker of this.#markers) if (bytes.indexOf(marker) !== -1) return true;
    return false;
  }
}

const sequenceKey = encoder.encode('"sequence_number"');

/** The number after the last `"sequence_number"` key. In text that the model wrote the quotes would be escaped. */
export function lastSequenceNumber(bytes: Uint8Array): number | undefined {
  let at = native === undefined ? lastScan(bytes, sequenceKey) : native.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).lastIndexOf(sequenceKey);
  if (at === -1) return undefined;
  at += sequenceKey.length;
  while (bytes[at] === 0x20 || bytes[at] === 0x3a) at += 1;
  let number: number | undefined;
  for (let digit = (bytes[at] ?? 0) - 48; digit >= 0 && digit <= 9; digit = (bytes[++at] ?? 0) - 48) number = (number ?? 0) * 10 + digit;
  return number;
}

function lastScan(bytes: Uint8Array, marker: Uint8Array): number {
  for (let at = bytes.length - marker.length; at >= 0; at -= 1) if (startsWith(bytes, at, marker)) return at;
  return -1;
}

function startsWith(bytes: Uint8Array, at: number, marker: Uint8Array): boolean {
  for (let index = 0; index < marker.length; index += 1) if (bytes[at + index] !== marker[index]) return false;
  return true;
}

function scan(chunk: Uint8Array, marker: Uint8Array): boolean {
  const first = marker[0];
  if (first === undefined) return false;
  for (let at = chunk.indexOf(first); at !== -1 && at + marker.length <= chunk.length; at = chunk.indexOf(first, at + 1)) {
    if (startsWith(chunk, at, marker)) return true;
  }
  return false;
}

/** Several chunks as one. A single chunk is returned as it is. */
export function concatBytes(chunks: readonly Uint8Array[]): Uint8Array {
  const [first] = chunks;
  if (first !== undefined && chunks.length === 1) return first;
  let length = 0;
  for (const chunk of chunks) length += chunk.length;
  const joined = new Uint8Array(length);
  let at = 0;
  for (const chunk of chunks) {
    joined.set(chunk, at);
    at += chunk.length;
  }
  return joined;
}
