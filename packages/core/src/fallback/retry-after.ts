/** What an answer's headers say about trying again. */

import type { Failure } from "../errors.js";
import type { ResponseHeaders } from "../response-headers.js";

/** Longest delay believed, in ms. A date far in the future is a broken clock, not a plan. */
const maxRetryAfterMs = 86_400_000;

/** How every HTTP date begins. Without it `Date.parse` takes `-7` for a day in 2001: a retry at once. */
const weekday = /^\s*(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)/i;

/**
 * `retry-after-ms`, else `retry-after` in seconds or as a date. In ms, at least 0; undefined if absent or unreadable.
 * https://www.rfc-editor.org/rfc/rfc9110#field.retry-after
 * @param wallClockMs epoch ms, for a date
 */
export function parseRetryAfter(headers: ResponseHeaders, wallClockMs: number): number | undefined {
  const ms = decimal(first(headers["retry-after-ms"]));
  if (ms !== undefined) return Math.min(ms, maxRetryAfterMs);
  const value = first(headers["retry-after"]);
  const seconds = decimal(value);
  if (seconds !== undefined) return Math.min(seconds * 1000, maxRetryAfterMs);
  const date = value !== undefined && weekday.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.min(Math.max(date - wallClockMs, 0), maxRetryAfterMs);
}

/** The failure with what the headers add: they win over what the body says. */
export function withRetryHeaders(failure: Failure, headers: ResponseHeaders, wallClockMs: number): Failure {
  const delayed = failure.status === 429 || failure.status === 503;
  const retryAfterMs = delayed ? (parseRetryAfter(headers, wallClockMs) ?? failure.retryAfterMs) : failure.retryAfterMs;
  const shouldNotRetry = first(headers["x-should-retry"]) === "false" || failure.shouldNotRetry;
  if (retryAfterMs === failure.retryAfterMs && shouldNotRetry === failure.shouldNotRetry) return failure;
  return { ...failure, retryAfterMs, shouldNotRetry };
}

function first(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === "string" || value === undefined ? value : value[0];
}

function decimal(value: string | undefined): number | undefined {
  return value !== undefined && /^\d+(?:\.\d+)?$/.test(value.trim()) ? Number(value) : undefined;
}
