/** The headers of a provider's answer that reach the client: an allow-list. */

import { connectionOptions, isHeaderValue } from "../headers.js";
import type { HeaderPairs, ResponseHeaders } from "../response-headers.js";

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

/** A value that Node would refuse is dropped, since setting it would throw in the middle of an answer. */
export function responseHeaders(
  upstream: ResponseHeaders,
  { streaming, failure, encoded }: ResponseHeaderFacts,
): HeaderPairs {
  const out: HeaderPairs = [];
  const dropped = connectionOptions(upstream["connection"]);
  for (const name of Object.keys(upstream)) {
    if (!isAllowed(name, failure, encoded) || dropped.has(name)) continue;
    const value = upstream[name];
    if (typeof value === "string") {
      if (isHeaderValue(value)) out.push(name, value);
    } else if (value !== undefined) pushAll(name, value, out);
  }
  if (streaming) out.push("cache-control", "no-cache, no-transform", "x-accel-buffering", "no");
  return out;
}

function pushAll(name: string, values: readonly string[], out: HeaderPairs): void {
  const valid = values.filter(isHeaderValue);
  const [first] = valid;
  if (first === undefined) return;
  // A second content type is a mistake of the provider, and would be one of ours.
  out.push(name, valid.length === 1 || name === "content-type" ? first : valid);
}

function isAllowed(name: string, failure: boolean, encoded: boolean): boolean {
  if (name === "content-type") return !failure;
  if (name === "content-encoding") return encoded && !failure;
  return isListed(name);
}

/** Whether the gateway reads a field of an answer, or passes it on. */
export function isOfUse(name: string): boolean {
  return name === "content-type" || name === "content-encoding" || name === "connection" || isListed(name);
}

/** Of names by the lists alone. Bounded, since a provider may send any name. */
const decided = new Map<string, boolean>();
const maxDecided = 256;

function isListed(name: string): boolean {
  const known = decided.get(name);
  if (known !== undefined) return known;
  const listed =
    allowed.has(name) || (headerName.test(name) && allowedPrefixes.some((prefix) => name.startsWith(prefix)));
  if (decided.size < maxDecided) decided.set(name, listed);
  return listed;
}
