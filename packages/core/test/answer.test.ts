import { describe, expect, it } from "vitest";
import * as answer from "../src/answer.js";
import { failedEvent, maskFailure, type ReleasedFacts, type RoutingFacts, type TrailEntry } from "../src/answer.js";
import type { Failure } from "../src/errors.js";
import { anthropicMessages } from "../src/gate/protocols/anthropic-messages.js";
import { openaiChat } from "../src/gate/protocols/openai-chat.js";
import { openaiResponses } from "../src/gate/protocols/openai-responses.js";
import type { GateProtocol } from "../src/gate/protocols/protocol.js";
import { headerRecord, type ResponseHeaders } from "../src/response-headers.js";
import * as failures from "../src/gate/failures.js";

function failure(status: number, own: Partial<Failure> = {}): Failure {
  return {
    kind: "http",
    status,
    code: "some_code",
    message: "Some message",
    retryable: status === 429 || status >= 500,
    ...own,
  };
}

function answered(own: Failure, upstream?: Record<string, string | string[]>, protocol = openaiChat) {
  return failedEvent(protocol, own, upstream, [], "req-1");
}

function routingHeaders(own: RoutingFacts): Record<string, string | string[]> {
  return headerRecord(answer.routingHeaders(own));
}

function releasedHeaders(
  upstream: ResponseHeaders,
  protocol: GateProtocol,
  released: ReleasedFacts,
  own: Record<string, string>,
): Record<string, string | string[]> {
  return headerRecord(answer.releasedHeaders(upstream, protocol, released, Object.entries(own).flat()));
}

function facts(own: Partial<RoutingFacts> = {}): RoutingFacts {
  return { prefix: "x-tfy-", expose: true, requestId: "req-1", trail: [], holdMs: 0, upstreamMs: 0, ...own };
}

function entry(own: Partial<TrailEntry> = {}): TrailEntry {
  return { target: "openai/gpt-5.1", status: 200, code: undefined, durationMs: 12.6, ...own };
}

describe("the body of a failure", () => {
  it("has OpenAI's shape", () => {
    const event = answered(failure(429, { param: "model" }));
    expect(JSON.parse(event.body)).toEqual({
      error: { message: "Some message", type: "rate_limit_error", param: "model", code: "some_code" },
    });
    expect(JSON.parse(answered(failure(500), {}, openaiResponses).body)).toEqual({
      error: { message: "Some message", type: "server_error", param: null, code: "some_code" },
    });
    expect(event.headers["content-type"]).toBe("application/json");
  });

  it("has Anthropic's shape", () => {
    expect(JSON.parse(answered(failure(429), {}, anthropicMessages).body)).toEqual({
      type: "error",
      error: { type: "rate_limit_error", message: "Some message" },
      request_id: "req-1",
    });
  });

  it.each([
    [openaiChat, 400, "invalid_request_error"],
    [openaiChat, 408, "timeout_error"],
    [openaiChat, 418, "invalid_request_error"],
    [openaiChat, 502, "server_error"],
    [openaiChat, 504, "timeout_error"],
    [anthropicMessages, 408, "timeout_error"],
    [anthropicMessages, 422, "invalid_request_error"],
    [anthropicMessages, 502, "api_error"],
    [anthropicMessages, 503, "overloaded_error"],
    [anthropicMessages, 504, "timeout_error"],
  ] as const)("of $name: %i has the type %s", (protocol, status, type) => {
    expect(JSON.parse(answered(failure(status), {}, protocol).body)).toMatchObject({ error: { type } });
  });

  it("keeps the provider's own type", () => {
    expect(JSON.parse(answered(failure(500, { type: "their_type" })).body)).toMatchObject({
      error: { type: "their_type" },
    });
  });
});

describe("x-should-retry", () => {
  it.each([
    [failures.ttftTimeout(1), "false"],
    [failures.requestTimeout(1), "false"],
    [failure(400), "false"],
    [failure(501, { retryable: false }), "false"],
    [failure(429, { retryable: false }), "false"],
    [failure(500, { shouldNotRetry: true }), "false"],
    [failure(500), undefined],
    [failure(429), undefined],
    [failures.idleTimeout(1), undefined],
  ])("of %o is %s", (own, expected) => {
    expect(answered(own).headers["x-should-retry"]).toBe(expected);
  });

  it("of the provider is kept where it does not contradict", () => {
    expect(answered(failure(500), { "x-should-retry": "true" }).headers["x-should-retry"]).toBe("true");
    expect(answered(failure(408), { "x-should-retry": "true" }).headers["x-should-retry"]).toBe("false");
  });
});

describe("Retry-After", () => {
  it.each([
    [429, 1500, "2"],
    [429, 1000, "1"],
    [503, 1, "1"],
    [503, 0, "0"],
    [429, undefined, undefined],
    [500, 1500, undefined],
    [408, 1500, undefined],
  ])("of a %i with %s ms is %s", (status, retryAfterMs, expected) => {
    expect(answered(failure(status, { retryAfterMs })).headers["retry-after"]).toBe(expected);
  });

  it("is ours alone: what the provider's header said is in the failure already", () => {
    const { headers } = answered(failure(500), { "retry-after": "7", "retry-after-ms": "7000" });
    expect(headers).not.toHaveProperty("retry-after");
    expect(headers).not.toHaveProperty("retry-after-ms");
  });
});

describe("the headers of a failure", () => {
  it("are the allowed ones of the provider, without those that describe its body", () => {
    const upstream = {
      "content-type": "text/event-stream",
      "content-encoding": "gzip",
      "set-cookie": "a=b",
      "x-ratelimit-limit-requests": "5",
      "request-id": "theirs",
      server: "nginx",
    };
    expect(answered(failure(500), upstream).headers).toEqual({
      "content-type": "application/json",
      "x-ratelimit-limit-requests": "5",
      "request-id": "theirs",
    });
  });

  it("have no cache headers of a stream", () => {
    expect(answered(failure(500), {}).headers).toEqual({ "content-type": "application/json" });
  });
});

describe("our headers", () => {
  it("tell the model, the attempts and the times", () => {
    const trail = [
      entry({ status: 429, code: "rate_limit_exceeded" }),
      entry({ target: "local/qwen3", durationMs: 100 }),
    ];
    expect(routingHeaders(facts({ trail, holdMs: 1.234, upstreamMs: 250 }))).toEqual({
      "x-tfy-attempts": "2",
      "x-tfy-request-id": "req-1",
      "x-tfy-resolved-model": "local/qwen3",
      "x-tfy-attempt-trail": "openai/gpt-5.1;status=429;code=rate_limit_exceeded;ms=13, local/qwen3;status=200;ms=100",
      "server-timing": "hold;dur=1.2, upstream;dur=250.0",
    });
  });

  it("have the configured prefix", () => {
    expect(Object.keys(routingHeaders(facts({ prefix: "x-gw-", trail: [entry()] })))).toEqual([
      "x-gw-attempts",
      "x-gw-request-id",
      "x-gw-resolved-model",
      "x-gw-attempt-trail",
      "server-timing",
    ]);
  });

  it("hide the model and the trail where routing is not exposed", () => {
    const headers = routingHeaders(facts({ expose: false, trail: [entry()] }));
    expect(Object.keys(headers)).toEqual(["x-tfy-attempts", "x-tfy-request-id", "server-timing"]);
  });

  it("keep the trail within 1 KiB, the last attempts first of all", () => {
    const trail = Array.from({ length: 60 }, (_, index) => entry({ target: `provider/${"m".repeat(80)}-${index}` }));
    const value = String(routingHeaders(facts({ trail }))["x-tfy-attempt-trail"]);
    expect(value.length).toBeLessThanOrEqual(1024);
    expect(value.endsWith("-59;status=200;ms=13")).toBe(true);
    expect(routingHeaders(facts({ trail }))["x-tfy-attempts"]).toBe("60");
  });

  it("keep a single endless entry within it too", () => {
    const trail = [entry({ target: `a/${"é".repeat(5000)}`, code: "x".repeat(5000) })];
    expect(Buffer.byteLength(String(routingHeaders(facts({ trail }))["x-tfy-attempt-trail"]))).toBeLessThanOrEqual(
      1024,
    );
  });

  it.each(["a/b\r\nx: y", "a/b c", "a/ünïcode", "a/b,c;d=e", "a/\u0000", "a/😀"])(
    "make the model %j safe for a header",
    (target) => {
      const headers = routingHeaders(facts({ trail: [entry({ target, status: 500, code: target })] }));
      for (const name of ["x-tfy-resolved-model", "x-tfy-attempt-trail"]) {
        expect(() => new Headers({ [name]: String(headers[name]) })).not.toThrow();
      }
      expect(headers["x-tfy-resolved-model"]).toMatch(/^a\/[!-~]+$/);
      expect(String(headers["x-tfy-attempt-trail"]).split(/[,;]/)).toHaveLength(4);
    },
  );

  it("do not name a model where there was no attempt", () => {
    expect(Object.keys(routingHeaders(facts()))).toEqual(["x-tfy-attempts", "x-tfy-request-id", "server-timing"]);
  });
});

describe("a failure of credentials", () => {
  it.each([401, 402, 403])("%i is masked, its cause kept", (status) => {
    const own = failure(status, { message: "Incorrect API key: sk-1", type: "authentication_error" });
    const masked = maskFailure(own, false);
    expect(masked).toMatchObject({ status: 502, code: "upstream_auth_error", retryable: false, cause: own });
    expect(masked.type).toBeUndefined();
    expect(masked.message).not.toContain("sk-1");
  });

  it("is not masked where the credential was the client's, the reason is a policy, or the refusal is ours", () => {
    for (const [own, client] of [
      [failure(401), true],
      [failure(403, { policy: true }), false],
      [failure(401, { kind: "bad-request" }), false],
      [failure(404), false],
    ] as const) {
      expect(maskFailure(own, client)).toBe(own);
    }
  });
});

describe("the head of a released answer", () => {
  const judged = { streaming: true, jsonBody: false, judged: true, encoded: false };

  it("of a stream says that it is not to be kept back", () => {
    expect(releasedHeaders({ "content-type": "text/event-stream" }, openaiChat, judged, { ours: "1" })).toEqual({
      "content-type": "text/event-stream",
      "cache-control": "no-cache, no-transform",
      "x-accel-buffering": "no",
      ours: "1",
    });
  });

  it.each([undefined, "text/plain", "application/json"])(
    "corrects the type %s of what was judged as a stream",
    (type) => {
      const upstream = type === undefined ? {} : { "content-type": type };
      expect(releasedHeaders(upstream, openaiChat, judged, {})["content-type"]).toBe(
        "text/event-stream; charset=utf-8",
      );
    },
  );

  it("of a JSON array that is streamed says so as well, and keeps its type", () => {
    const headers = releasedHeaders(
      { "content-type": "application/json" },
      openaiChat,
      { ...judged, jsonBody: true },
      {},
    );
    expect(headers).toMatchObject({ "content-type": "application/json", "x-accel-buffering": "no" });
  });

  it("leaves the type of a body that is no stream, or was not judged", () => {
    expect(
      releasedHeaders(
        { "content-type": "application/json" },
        openaiChat,
        { ...judged, streaming: false, jsonBody: true },
        {},
      ),
    ).toEqual({ "content-type": "application/json" });
    expect(
      releasedHeaders({ "content-type": "text/plain" }, openaiChat, { ...judged, judged: false }, {})["content-type"],
    ).toBe("text/plain");
  });
});
