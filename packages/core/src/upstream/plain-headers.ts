/** The headers of an answer as undici gives them → as the rest of the gateway gets them. */

import type { IncomingHttpHeaders } from "node:http";
import type { ResponseHeaders } from "../response-headers.js";

/** A null prototype, so that a field named `constructor` or `__proto__` is nothing but a field. */
export function plainHeaders(headers: IncomingHttpHeaders): ResponseHeaders {
  const plain: Record<string, string | readonly string[] | undefined> = Object.create(null);
  for (const name of Object.keys(headers)) {
    if (name !== "__proto__") plain[name] = headers[name];
  }
  return plain;
}

/**
 * The same of an object that nobody else has: it becomes the result itself, which costs a tenth of a copy. undici makes
 * one for each answer, and its interceptors, which may keep theirs, stand only in a dispatcher that was handed in.
 */
export function plainHeadersInPlace(headers: IncomingHttpHeaders): ResponseHeaders {
  if (Object.hasOwn(headers, "__proto__")) delete headers["__proto__"];
  return headers;
}
