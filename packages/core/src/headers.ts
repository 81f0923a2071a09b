/** Headers as they come, and what of them can be sent on. */

/** Lower-case names, as `node:http` gives them. */
export type ClientHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const invalid = /[^\t\x20-\x7e\x80-\xff]/;

export function isHeaderName(name: string): boolean {
  return token.test(name);
}

/** Whether Node and undici accept it as a header value; anything else makes them throw. */
export function isHeaderValue(value: string): boolean {
  return !invalid.test(value);
}

/**
 * Owned by one connection (RFC 9110 section 7.6.1), or refused by undici. Never passed on in either direction.
 */
export const connectionHeaders: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "http2-settings",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authentication-info",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Every header in which a client of one of the APIs sends its credential. None of them is ever passed on as it is. */
export const credentialHeaders: readonly string[] = ["authorization", "x-api-key", "api-key", "x-goog-api-key"];

/** What a client says to one server, or of its own account. Never passed on to a provider, whatever is configured. */
export const privateHeaders: readonly string[] = ["cookie", "openai-organization", "openai-project"];

const none: ReadonlySet<string> = new Set();

/** The header names that the `Connection` lines of a message declare to be meant for this connection only. */
export function connectionOptions(value: string | readonly string[] | undefined): ReadonlySet<string> {
  // Almost every message says one of the two, and no header is named so that could be passed on.
  if (value === undefined || value === "keep-alive" || value === "close") return none;
  const text = typeof value === "string" ? value : value.join(",");
  return new Set(
    text
      .toLowerCase()
      .split(",", 256)
      .map((name) => name.trim()),
  );
}
