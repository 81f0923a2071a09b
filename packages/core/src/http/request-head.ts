/** What is refused by its request line and headers alone. */

import type { IncomingMessage } from "node:http";
import type { Failure } from "../errors.js";
import { refusal } from "./refusal.js";

/** Node accepts both of these, and proxies in front may read them in another way. */
export function checkFraming(req: IncomingMessage): Failure | undefined {
  if (req.httpVersionMajor < 1) {
    return refusal({ status: 400, code: "unsupported_http_version", message: "HTTP/1.0 or later is required." });
  }
  let hosts = 0;
  for (let index = 0; index < req.rawHeaders.length; index += 2) {
    const name = req.rawHeaders[index] as string;
    if (name.length === "host".length && name.toLowerCase() === "host") hosts += 1;
  }
  if (hosts > 1) {
    return refusal({ status: 400, code: "duplicate_host", message: "The request has more than one Host header." });
  }
  return undefined;
}

/** Whether the head announces a body. HTTP/2 needs no length: there only the stream knows. */
export function announcesBody(req: IncomingMessage): boolean {
  const length = req.headers["content-length"];
  if (length !== undefined) return Number(length) > 0;
  return req.headers["transfer-encoding"] !== undefined;
}

/** JSON, or no content type at all. Anything else, multipart above all, would have to be rebuilt to be sent on. */
export function checkMediaType(req: IncomingMessage): Failure | undefined {
  const header = req.headers["content-type"];
  // As nearly every client sends it.
  if (header === undefined || header === "application/json") return undefined;
  const [type = "", ...parameters] = header.toLowerCase().split(";");
  const mediaType = type.trim();
  if (mediaType !== "" && mediaType !== "application/json" && !/^application\/[^\s/]+\+json$/.test(mediaType)) {
    return refusal({
      status: 415,
      code: "unsupported_media_type",
      message: "The request body must be JSON, with the content type application/json.",
    });
  }
  const charset = parameters
    .map((parameter) => /^\s*charset\s*=\s*"?([^"\s]*)"?\s*$/.exec(parameter)?.[1])
    .find(Boolean);
  if (charset !== undefined && !["utf-8", "utf8", "us-ascii"].includes(charset)) {
    return refusal({
      status: 415,
      code: "unsupported_charset",
      message: "The request body must be encoded in UTF-8.",
    });
  }
  return undefined;
}
