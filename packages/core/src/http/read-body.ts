/** The request body, whoever has read it: nobody yet, or a body parser of the host. */

import type { IncomingMessage } from "node:http";
import type { Clock } from "../clock.js";
import type { Failure } from "../errors.js";
import type { BodyOutcome, BodyReceiver } from "./body-outcome.js";
import { BodyReader } from "./body-reader.js";
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

/**
 * Raw bytes are preferred: the unread stream, then `rawBody`, then a `body` of bytes or text, then the parsed value.
 * Never waits for a stream that somebody else has read: then the receiver has it before this returns.
 */
export function readRequestBody(req: IncomingMessage, options: ReadBodyOptions, receiver: BodyReceiver): void {
  const announced = announcesBody(req);
  // A request without a body, such as a GET, may carry any content type: there is nothing to judge.
  const wrongType = announced ? checkMediaType(req) : undefined;
  if (wrongType !== undefined) return receiver.onBody({ failure: wrongType });
  const consumed = req.readableDidRead || req.readableEnded || req.destroyed;
  if (!consumed) return readUnread(req, announced, options, receiver);
  // Some parsers leave an empty object where there was no body at all.
  receiver.onBody(announced || req.httpVersionMajor >= 2 ? takeParsed(req, options) : { body: undefined });
}

function readUnread(
  req: IncomingMessage,
  announced: boolean,
  { limit, clock }: ReadBodyOptions,
  receiver: BodyReceiver,
): void {
  const encoding = req.headers["content-encoding"];
  const wrongEncoding = announced ? checkContentEncoding(encoding) : undefined;
  if (wrongEncoding !== undefined) return receiver.onBody({ failure: wrongEncoding });
  if (announced && encoding === undefined) return new BodyReader(req, limit, clock, receiver).read();
  const decoding: BodyReceiver = {
    onBody: (raw) => void judgeAndDecode(raw, req, announced, limit).then((outcome) => receiver.onBody(outcome)),
  };
  new BodyReader(req, limit, clock, decoding).read();
}

async function judgeAndDecode(
  raw: BodyOutcome,
  req: IncomingMessage,
  announced: boolean,
  limit: number,
): Promise<BodyOutcome> {
  const encoding = req.headers["content-encoding"];
  if ("failure" in raw || !(raw.body instanceof Uint8Array)) return raw;
  const wrongHead = announced ? undefined : (checkMediaType(req) ?? checkContentEncoding(encoding));
  if (wrongHead !== undefined) return { failure: wrongHead };
  return decodeBody(raw.body, encoding, limit);
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
