/** Which header names and values a configuration may hold. */

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;

/** Owned by the connection (RFC 9110 section 7.6.1) or by the HTTP client: set by hand they break the message. */
const connectionHeaders: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "http2-settings",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

const credentialHeaders: ReadonlySet<string> = new Set(["api-key", "authorization", "x-api-key", "x-goog-api-key"]);

const neverForwarded: ReadonlySet<string> = new Set(["cookie", "openai-organization", "openai-project"]);

/** What is wrong with a header name; undefined if nothing is. */
export function headerNameProblem(name: string): string | undefined {
  if (!token.test(name)) return "is not a header name: use letters, digits and hyphens";
  if (connectionHeaders.has(name.toLowerCase())) {
    return "belongs to the connection and is set by the HTTP client: leave it out";
  }
  return undefined;
}

/** What is wrong with passing this header of the client on to a provider; undefined if nothing is. */
export function forwardHeaderProblem(name: string): string | undefined {
  const lower = name.toLowerCase();
  if (credentialHeaders.has(lower)) {
    return "holds the client's credential: set `forwardClientCredentials: true` on the provider to pass that on";
  }
  if (neverForwarded.has(lower)) {
    return "is never passed on from a client: set a fixed value in `headers` of the provider where it is needed";
  }
  return headerNameProblem(name);
}

/** What is wrong with a header value, without repeating it; undefined if nothing is. */
export function headerValueProblem(value: string): string | undefined {
  if (/[\r\n\0]/.test(value)) {
    return "must not contain a line break or NUL (a key that was read from a file often ends in one: trim it)";
  }
  if (!/^[\t\u0020-\u007e\u0080-\u00ff]*$/.test(value)) {
    return "must hold Latin-1 characters only and no control characters, since it becomes a header value";
  }
  return undefined;
}
