/** The headers of a provider's answer that reach the client: an allow-list. */

import { connectionOptions, isHeaderValue } from "../headers.js";
import type { ResponseHeaders } from "../response-headers.js";

export interface ResponseHeaderFacts {
  /** The body is a stream: caches and buffering proxies are told to let it through. */
  readonly streaming: boolean;
  /** The answer is our own error body: what describes the provider's body is left out. */
  readonly failure: boolean;
  /** The body is passed on in the content encoding in which it came. */
  readonly encoded: boolean;
}

const allowed: ReadonlySet<string> = new Set([
  "retry-after",
  "retry-after-ms",
  "x-should-retry",
  "request-id",
  "x-request-id",
  "openai-processing-ms",
  "x-amzn-requestid",
  "x-amzn-errortype",
]);

const allowedPrefixes: readonly string[] = ["x-ratelimit-", "anthropic-ratelimit-", "x-amzn-bedrock-"];

const headerName = /^[a-z0-9-]+$/;

/**
 * A value that Node would refuse is dropped, since setting it would throw in the middle of an answer. The record has no
 * prototype.
 */
export function responseHeaders(
  upstream: ResponseHeaders,
  { streaming, failure, encoded }: ResponseHeaderFacts,
): Record<string, string | string[]> {
  const out: Record<string, string | string[]> = Object.create(null);
  const dropped = connectionOptions(upstream["connection"]);
  for (const name of Object.keys(upstream)) {
    const value = upstream[name];
    if (value === undefined || dropped.has(name) || !isAllowed(name, failure, encoded)) continue;
    const valid = (typeof value === "string" ? [value] : value).filter(isHeaderValue);
    const first = valid[0];
    if (first === undefined) continue;
    // A second content type is a mistake of the provider, and would be one of ours.
    out[name] = valid.length === 1 || name === "content-type" ? first : valid;
  }
  if (streaming) {
    out["cache-control"] = "no-cache, no-transform";
    out["x-accel-buffering"] = "no";
  }
  return out;
}

function isAllowed(name: string, failure: boolean, encoded: boolean): boolean {
  if (name === "content-type") return !failure;
  if (name === "content-encoding") return encoded && !failure;
  return allowed.has(name) || (headerName.test(name) && allowedPrefixes.some((prefix) => name.startsWith(prefix)));
}
