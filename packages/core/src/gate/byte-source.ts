/**
 * Reads a source one chunk at a time, and leaves it for good.
 *
 * The iterators of web streams and of Node's streams hear of `return()` only after the read under way: over a silent
 * provider that is never, and its connection stays open. So web streams are read by a reader, whose `cancel()` ends a
 * pending read, and Node's streams are destroyed.
 */

/** A web stream, such as a `fetch` body, as far as it is used: the types of the runtimes differ. */
export interface WebStream {
  getReader(): {
    read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>;
    cancel(reason?: unknown): Promise<void>;
  };
}

export interface ByteSource {
  next(): Promise<IteratorResult<Uint8Array>>;
  /** Ends the source, a pending read too where the source can. Settles whenever it likes, or never. */
  leave(): Promise<unknown>;
}

/** @throws TypeError for what is no async iterable and no web stream */
export function byteSource(source: AsyncIterable<Uint8Array> | WebStream): ByteSource {
  if (isWebStream(source)) {
    const reader = source.getReader();
    return { next: () => reader.read() as Promise<IteratorResult<Uint8Array>>, leave: () => reader.cancel() };
  }
  if (typeof source?.[Symbol.asyncIterator] !== "function")
    throw new TypeError("source: must be an async iterable of bytes");
  const iterator = source[Symbol.asyncIterator]();
  return {
    next: () => iterator.next(),
    leave: async () => {
      if (isDestroyable(source)) source.destroy();
      await iterator.return?.();
    },
  };
}

function isWebStream(source: unknown): source is WebStream {
  return (
    typeof source === "object" && source !== null && "getReader" in source && typeof source.getReader === "function"
  );
}

function isDestroyable(source: object): source is { destroy(): void } {
  return "destroy" in source && typeof source.destroy === "function";
}
