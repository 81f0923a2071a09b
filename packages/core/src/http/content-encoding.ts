/** Undoes the content encoding of a request body that no parser has read. One layer, with a limit on what comes out. */

import { promisify } from "node:util";
import { brotliDecompress, gunzip, inflate } from "node:zlib";
import type { ZlibOptions } from "node:zlib";
import type { Failure } from "../errors.js";
import { refusal } from "./refusal.js";

type Decode = (bytes: Uint8Array, options: ZlibOptions) => Promise<Uint8Array>;

const decoders: ReadonlyMap<string, Decode> = new Map<string, Decode>([
  ["gzip", promisify<Uint8Array, ZlibOptions, Uint8Array>(gunzip)],
  ["x-gzip", promisify<Uint8Array, ZlibOptions, Uint8Array>(gunzip)],
  ["deflate", promisify<Uint8Array, ZlibOptions, Uint8Array>(inflate)],
  ["br", promisify<Uint8Array, ZlibOptions, Uint8Array>(brotliDecompress)],
]);

/** A value such as `gzip, gzip` names no single encoding and is refused: each layer multiplies what a bomb unpacks to. */
export function checkContentEncoding(header: string | undefined): Failure | undefined {
  if (header === undefined) return undefined;
  const encoding = normalize(header);
  if (encoding === "" || decoders.has(encoding)) return undefined;
  return refusal({
    status: 415,
    code: "unsupported_content_encoding",
    message: "The request body may be sent as it is, or with one content encoding: gzip, deflate or br.",
  });
}

/** @param limit most bytes that may come out */
export async function decodeBody(
  bytes: Uint8Array,
  header: string | undefined,
  limit: number,
): Promise<{ readonly body: Uint8Array } | { readonly failure: Failure }> {
  const decode = decoders.get(normalize(header));
  if (decode === undefined) return { body: bytes };
  try {
    return { body: await decode(bytes, { maxOutputLength: limit }) };
  } catch (error) {
    const tooLarge = error instanceof Error && "code" in error && error.code === "ERR_BUFFER_TOO_LARGE";
    return { failure: tooLarge ? bodyTooLarge(limit) : undecodable(error) };
  }
}

export function bodyTooLarge(limit: number): Failure {
  return refusal({
    status: 413,
    code: "request_too_large",
    message: `The request body is larger than ${limit} bytes.`,
  });
}

function undecodable(cause: unknown): Failure {
  return refusal({
    status: 400,
    code: "invalid_content_encoding",
    message: "The request body is not in the encoding that its Content-Encoding header names.",
    cause,
  });
}

function normalize(header: string | undefined): string {
  const encoding = (header ?? "").trim().toLowerCase();
  return encoding === "identity" ? "" : encoding;
}
