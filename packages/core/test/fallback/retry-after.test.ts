import { describe, expect, it } from "vitest";
import type { Failure } from "../../src/errors.js";
import { parseRetryAfter, withRetryHeaders } from "../../src/fallback/retry-after.js";

const now = Date.parse("2026-01-01T00:00:00Z");
const day = 86_400_000;

describe("how long a provider asks to wait", () => {
  it.each([
    [{ "retry-after": "7" }, 7_000],
    [{ "retry-after": " 1.5 " }, 1_500],
    [{ "retry-after": "0" }, 0],
    [{ "retry-after": "99999999999" }, day],
    [{ "retry-after": "Thu, 01 Jan 2026 00:00:30 GMT" }, 30_000],
    [{ "retry-after": "Wed, 31 Dec 2025 23:59:00 GMT" }, 0],
    [{ "retry-after": "Fri, 01 Jan 2027 00:00:00 GMT" }, day],
    [{ "retry-after-ms": "250" }, 250],
    [{ "retry-after-ms": "250", "retry-after": "7" }, 250],
    [{ "retry-after-ms": "soon", "retry-after": "7" }, 7_000],
    [{ "retry-after": ["3", "9"] }, 3_000],
    [{ "retry-after": "" }, undefined],
    [{ "retry-after": "soon" }, undefined],
    [{ "retry-after": "1e3s" }, undefined],
    [{}, undefined],
  ])("%j: %s ms", (headers, expected) => {
    expect(parseRetryAfter(headers, now)).toBe(expected);
  });

  it.each(["-7", "+7", "0x10", "Infinity", "NaN", "in 7", "7 1"])(
    "is not read out of %j, so that the retry keeps its backoff",
    (value) => {
      expect(parseRetryAfter({ "retry-after": value }, now)).toBeUndefined();
    },
  );
});

describe("a failure with the headers of its answer", () => {
  const failure = (status: number, own: Partial<Failure> = {}): Failure => ({
    kind: "http",
    status,
    code: "c",
    message: "m",
    retryable: true,
    ...own,
  });

  it("has their delay rather than that of the body, on 429 and 503 alone", () => {
    const headers = { "retry-after": "7" };
    expect(withRetryHeaders(failure(429, { retryAfterMs: 1 }), headers, now).retryAfterMs).toBe(7_000);
    expect(withRetryHeaders(failure(503), headers, now).retryAfterMs).toBe(7_000);
    expect(withRetryHeaders(failure(500), headers, now).retryAfterMs).toBeUndefined();
  });

  it("keeps that of the body where they have none", () => {
    expect(withRetryHeaders(failure(429, { retryAfterMs: 1 }), {}, now).retryAfterMs).toBe(1);
  });

  it("is not to be retried where they say so", () => {
    expect(withRetryHeaders(failure(500), { "x-should-retry": "false" }, now).shouldNotRetry).toBe(true);
    expect(withRetryHeaders(failure(500), { "x-should-retry": "true" }, now).shouldNotRetry).toBeUndefined();
  });
});
