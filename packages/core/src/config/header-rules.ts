/** Which header names and values a configuration may hold. */

import { connectionHeaders, credentialHeaders, isHeaderName, isHeaderValue, privateHeaders } from "../headers.js";

/** What is wrong with a header name; undefined if nothing is. */
export function headerNameProblem(name: string): string | undefined {
  if (!isHeaderName(name)) return "is not a header name: use letters, digits and hyphens";
  if (connectionHeaders.has(name.toLowerCase())) {
    return "belongs to the connection and is set by the HTTP client: leave it out";
  }
  return undefined;
}

/** What is wrong with passing this header of the client on to a provider; undefined if nothing is. */
export function forwardHeaderProblem(name: string): string | undefined {
  const lower = name.toLowerCase();
  if (credentialHeaders.includes(lower)) {
    return "holds the client's credential: set `forwardClientCredentials: true` on the provider to pass that on";
  }
  if (privateHeaders.includes(lower)) {
    return "is never passed on from a client: set a fixed value in `headers` of the provider where it is needed";
  }
  return headerNameProblem(name);
}

/** What is wrong with a header value, without repeating it; undefined if nothing is. */
export function headerValueProblem(value: string): string | undefined {
  if (/[\r\n\0]/.test(value)) {
    return "must not contain a line break or NUL (a key that was read from a file often ends in one: trim it)";
  }
  if (!isHeaderValue(value)) {
    return "must hold Latin-1 characters only and no control characters, since it becomes a header value";
  }
  return undefined;
}
