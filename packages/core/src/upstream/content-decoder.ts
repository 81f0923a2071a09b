/** A `content-encoding` → what decodes it. */

import type { Transform } from "node:stream";
import * as zlib from "node:zlib";

/** @param first the first byte of the body */
export type DecoderFactory = (first: number) => Transform;

/** In Node from 22.15. */
interface Zstd {
  readonly createZstdDecompress?: (options: { readonly params: Readonly<Record<number, number>> }) => Transform;
  readonly constants: { readonly ZSTD_d_windowLogMax?: number };
}

const { createZstdDecompress, constants } = zlib as unknown as Zstd;

/** What is decoded so far comes out at once, so that each event arrives when the provider flushed it. */
const inflating: zlib.ZlibOptions = { flush: zlib.constants.Z_SYNC_FLUSH };

/** 8 MiB: the largest window of the content encoding (RFC 9659). Node's default would be 128 MiB a stream. */
const zstdWindowLog = 23;

const gunzip: DecoderFactory = () => zlib.createGunzip(inflating);

const factories: ReadonlyMap<string, DecoderFactory> = new Map<string, DecoderFactory>([
  ["gzip", gunzip],
  ["x-gzip", gunzip],
  // The encoding is zlib's format; some servers send the bare one. Only the former begins with a method of 8.
  ["deflate", (first) => ((first & 0x0f) === 8 ? zlib.createInflate(inflating) : zlib.createInflateRaw(inflating))],
  ["br", () => zlib.createBrotliDecompress({ flush: zlib.constants.BROTLI_OPERATION_FLUSH })],
  ...(createZstdDecompress === undefined || constants.ZSTD_d_windowLogMax === undefined
    ? []
    : [
        [
          "zstd",
          () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax as number]: zstdWindowLog } }),
        ] as const,
      ]),
]);

/**
 * @param header as the provider sent it
 * @returns undefined for a body that is not encoded, or encoded more than once, or in a way that is not known
 */
export function contentDecoder(header: string | readonly string[] | undefined): DecoderFactory | undefined {
  if (header === undefined) return undefined;
  const encodings = String(header)
    .toLowerCase()
    .split(",")
    .map((encoding) => encoding.trim())
    .filter((encoding) => encoding !== "" && encoding !== "identity");
  const [encoding] = encodings;
  return encoding === undefined || encodings.length > 1 ? undefined : factories.get(encoding);
}
