import { validateHeaderValue } from "node:http";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { headerRecord, type ResponseHeaders } from "../../src/response-headers.js";
import * as answered from "../../src/upstream/response-headers.js";

function responseHeaders(
  upstream: ResponseHeaders,
  facts: answered.ResponseHeaderFacts,
): Record<string, string | string[]> {
  return headerRecord(answered.responseHeaders(upstream, facts));
}

const plain = { streaming: false, failure: false, encoded: false };

const allowed = {
  "content-type": "text/event-stream",
  "retry-after": "1",
  "retry-after-ms": "900",
  "x-should-retry": "true",
  "x-ratelimit-remaining-tokens": "5",
  "anthropic-ratelimit-tokens-limit": "6",
  "request-id": "r",
  "x-request-id": "x",
  "openai-processing-ms": "12",
  "x-amzn-requestid": "a",
  "x-amzn-errortype": "e",
  "x-amzn-bedrock-invocation-latency": "7",
};

const secrets = Object.fromEntries(
  [
    "set-cookie",
    "openai-organization",
    "www-authenticate",
    "server",
    "alt-svc",
    "access-control-allow-origin",
    "vary",
    "content-length",
    "content-encoding",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "cache-control",
    "location",
    "via",
    "x-ratelimit-bad_name",
  ].map((name) => [name, "secret"]),
);

describe("responseHeaders", () => {
  it("passes what is on the list, and nothing else", () => {
    expect({ ...responseHeaders({ ...secrets, ...allowed }, plain) }).toEqual(allowed);
  });

  it("tells caches and proxies to let a stream through", () => {
    expect({ ...responseHeaders({ "cache-control": "public" }, { ...plain, streaming: true }) }).toEqual({
      "cache-control": "no-cache, no-transform",
      "x-accel-buffering": "no",
    });
  });

  it("passes the content encoding only with a body that is passed on in it", () => {
    const upstream = { "content-encoding": "gzip" };
    expect(responseHeaders(upstream, { ...plain, encoded: true })["content-encoding"]).toBe("gzip");
    expect(responseHeaders(upstream, { ...plain, encoded: true, failure: true })).toEqual({});
  });

  it("keeps the provider's content type off a failure", () => {
    expect(responseHeaders({ "content-type": "text/html" }, { ...plain, failure: true })).toEqual({});
  });

  it("drops what a Connection line names", () => {
    expect(responseHeaders({ connection: ["close", "X-Request-Id"], "x-request-id": "x" }, plain)).toEqual({});
  });

  it("drops values that Node would refuse to send", () => {
    const upstream = { "x-request-id": "a\u0001", "request-id": ["ok", "b\r\nset-cookie: x"], "retry-after": "\u2026" };
    expect({ ...responseHeaders(upstream, plain) }).toEqual({ "request-id": "ok" });
  });

  it("keeps repeated fields apart, but for the content type", () => {
    const upstream = { "x-ratelimit-a": ["1", "2"], "content-type": ["a/b", "c/d"] };
    expect({ ...responseHeaders(upstream, plain) }).toEqual({ "x-ratelimit-a": ["1", "2"], "content-type": "a/b" });
  });

  it("takes fields named like members of every object for fields that are not on the list", () => {
    const upstream = JSON.parse('{"__proto__":["x"],"constructor":"y","toString":"z"}') as ResponseHeaders;
    const headers = responseHeaders(upstream, plain);
    expect(Object.keys(headers)).toEqual([]);
    expect(Object.getPrototypeOf(headers)).toBe(Object.prototype);
  });

  it("goes by its lists however many other names a provider has sent", () => {
    const flood = Object.fromEntries(Array.from({ length: 1_000 }, (_, index) => [`x-flood-${index}`, "x"]));
    const late = { "x-ratelimit-never-seen": "1", "x-never-seen": "2" };
    expect(responseHeaders({ ...flood, ...late }, plain)).toEqual({ "x-ratelimit-never-seen": "1" });
  });

  it("never holds a value that makes Node throw", () => {
    const value = fc.oneof(fc.string({ unit: "binary" }), fc.array(fc.string({ unit: "binary" })));
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...Object.keys(allowed), "connection"), value), (upstream) => {
        for (const [name, sent] of Object.entries(responseHeaders(upstream, plain))) {
          for (const one of [sent].flat()) expect(() => validateHeaderValue(name, one)).not.toThrow();
        }
      }),
    );
  });
});
