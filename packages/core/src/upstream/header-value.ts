/** Headers as they come, and what of them can be sent on. */

/** Lower-case names, as `node:http` gives them. */
export type ClientHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

const invalid = /[^\t\x20-\x7e\x80-\xff]/;

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

const none: ReadonlySet<string> = new Set();

/** The header names that the `Connection` lines of a message declare to be meant for this connection only. */
export function connectionOptions(value: string | readonly string[] | undefined): ReadonlySet<string> {
  if (value === undefined) return none;
  const text = typeof value === "string" ? value : value.join(",");
  return new Set(
    text
      .toLowerCase()
      .split(",", 256)
      .map((name) => name.trim()),
  );
}
