/** A file with a captured answer → its HTTP head, where it has one, and its decoded body. */

import { brotliDecompressSync, constants, gunzipSync, inflateSync } from "node:zlib";

export interface CapturedHead {
  readonly status: number;
  /** Lower-case names; of several fields with one name the last. */
  readonly headers: ReadonlyMap<string, string>;
}

export interface Capture {
  readonly head: CapturedHead | undefined;
  readonly body: Uint8Array;
}

/**
 * Heads as `curl -i` prints them: those of proxies, redirects and 1xx answers come first, the last one counts. Never
 * throws: what cannot be decoded is taken as it is.
 */
export function readCapture(bytes: Uint8Array): Capture {
  let rest = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let head: CapturedHead | undefined;
  while (/^HTTP\/\d/.test(rest.subarray(0, 8).toString("latin1"))) {
    const end = headEnd(rest);
    if (end === undefined) break;
    head = parseHead(rest.subarray(0, end.at).toString("latin1"));
    rest = rest.subarray(end.at + end.length);
  }
  return { head, body: head === undefined ? rest : decoded(head, dechunked(head, rest)) };
}

/** Editors and terminals turn CRLF into LF. */
function headEnd(bytes: Buffer): { at: number; length: number } | undefined {
  const found = ["\r\n\r\n", "\n\n"]
    .map((blank) => ({ at: bytes.indexOf(blank), length: blank.length }))
    .filter(({ at }) => at >= 0);
  return found.toSorted((a, b) => a.at - b.at)[0];
}

function parseHead(text: string): CapturedHead {
  const [statusLine = "", ...lines] = text.split(/\r?\n/);
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon > 0) headers.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim());
  }
  return { status: Number(statusLine.split(" ")[1] ?? 0), headers };
}

/** `curl` takes the chunks apart, other tools leave them: a body that begins with a whole chunk has them. */
function dechunked({ headers }: CapturedHead, body: Buffer): Buffer {
  if (headers.get("transfer-encoding")?.toLowerCase() !== "chunked") return body;
  const parts: Buffer[] = [];
  let at = 0;
  while (at < body.length) {
    const lineEnd = body.indexOf("\r\n", at);
    const size =
      lineEnd === -1
        ? undefined
        : /^([0-9a-f]{1,8})(?:;.*)?$/i.exec(body.subarray(at, lineEnd).toString("latin1"))?.[1];
    if (size === undefined) return parts.length === 0 ? body : Buffer.concat([...parts, body.subarray(at)]);
    const start = lineEnd + 2;
    const end = start + Number.parseInt(size, 16);
    parts.push(body.subarray(start, end));
    at = end + 2;
  }
  return Buffer.concat(parts);
}

/** Largest body that is decoded, in bytes. */
const maxOutputLength = 268_435_456;
const options = { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength };
const decoders: ReadonlyMap<string, (body: Buffer) => Buffer> = new Map([
  ["gzip", (body) => gunzipSync(body, options)],
  ["x-gzip", (body) => gunzipSync(body, options)],
  ["deflate", (body) => inflateSync(body, options)],
  ["br", (body) => brotliDecompressSync(body, { finishFlush: constants.BROTLI_OPERATION_FLUSH, maxOutputLength })],
]);

/** With `--compressed` curl decodes the body and prints the header all the same. */
function decoded({ headers }: CapturedHead, body: Buffer): Buffer {
  const decode = decoders.get(headers.get("content-encoding")?.toLowerCase() ?? "");
  try {
    return decode?.(body) ?? body;
  } catch {
    return body;
  }
}
