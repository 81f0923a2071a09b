/** The request body, whoever has read it: nobody yet, or a body parser of the host. */

import type { IncomingMessage } from "node:http";
import type { Clock } from "../clock.js";
import type { Failure } from "../errors.js";
import type { GatewayRequest } from "../request.js";
import { BodyReader } from "./body-reader.js";
import type { RawBody } from "./body-reader.js";
import { bodyTooLarge, checkContentEncoding, decodeBody } from "./content-encoding.js";
import { clientLeft, refusal } from "./refusal.js";
import { announcesBody, checkMediaType } from "./request-head.js";

/** Where body parsers leave what they have read: `req` in Express, `ctx.request` in Koa. */
export interface ParsedSource {
  /** The bytes before parsing, where the host keeps them. */
  readonly rawBody?: unknown;
  readonly body?: unknown;
}

export interface ReadBodyOptions {
  /** In bytes, before and after decoding. */
  readonly limit: number;
  readonly source: ParsedSource;
  readonly clock: Clock;
}

export type BodyOutcome = { readonly body: GatewayRequest["body"] } | { readonly failure: Failure };

/**
 * Raw bytes are preferred: the unread stream, then `rawBody`, then a `body` of bytes or text, then the parsed value.
 * Never rejects and never waits for a stream that somebody else has read.
 */
export function readRequestBody(req: IncomingMessage, options: ReadBodyOptions): BodyOutcome | Promise<BodyOutcome> {
  const announced = announcesBody(req);
  // A request without a body, such as a GET, may carry any content type: there is nothing to judge.
  const wrongType = announced ? checkMediaType(req) : undefined;
  if (wrongType !== undefined) return { failure: wrongType };
  const consumed = req.readableDidRead || req.readableEnded || req.destroyed;
  if (!consumed) return readUnread(req, announced, options);
  // Some parsers leave an empty object where there was no body at all.
  return announced || req.httpVersionMajor >= 2 ? takeParsed(req, options) : { body: undefined };
}

function readUnread(
  req: IncomingMessage,
  announced: boolean,
  options: ReadBodyOptions,
): BodyOutcome | Promise<BodyOutcome> {
  const encoding = req.headers["content-encoding"];
  const wrongEncoding = announced ? checkContentEncoding(encoding) : undefined;
  if (wrongEncoding !== undefined) return { failure: wrongEncoding };
  const reading = new BodyReader(req, options.limit, options.clock).read();
  return announced && encoding === undefined ? reading : judgeAndDecode(reading, req, announced, options);
}

async function judgeAndDecode(
  reading: Promise<RawBody>,
  req: IncomingMessage,
  announced: boolean,
  options: ReadBodyOptions,
): Promise<BodyOutcome> {
  const encoding = req.headers["content-encoding"];
  const raw = await reading;
  if ("failure" in raw || raw.body === undefined) return raw;
  const wrongHead = announced ? undefined : (checkMediaType(req) ?? checkContentEncoding(encoding));
  if (wrongHead !== undefined) return { failure: wrongHead };
  return decodeBody(raw.body, encoding, options.limit);
}

/** Parsers undo the content encoding, so that header says nothing about what they leave. */
function takeParsed(req: IncomingMessage, { limit, source }: ReadBodyOptions): BodyOutcome {
  const bytes = bytesOf(source.rawBody) ?? bytesOf(source.body);
  if (bytes !== undefined) {
    return bytes.byteLength > limit ? { failure: bodyTooLarge(limit) } : { body: bytes };
  }
  // An empty object is a body. Only undefined says that no parser left anything.
  if (source.body !== undefined) return { body: { parsed: source.body } };
  if (!req.complete) return { failure: clientLeft() };
  return { failure: consumedBody() };
}

function bytesOf(value: unknown): Uint8Array | undefined {
  if (typeof value === "string") return Buffer.from(value);
  return value instanceof Uint8Array ? value : undefined;
}

function consumedBody(): Failure {
  return refusal({
    kind: "internal",
    status: 500,
    code: "request_body_consumed",
    message: "The request body was read before the gateway and is not kept in req.body or rawBody.",
  });
}
