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
