import { describe, expect, it } from "vitest";
import type { Failure } from "../../src/errors.js";
import * as failures from "../../src/gate/failures.js";
import { failureFromError, failureFromHttp } from "../../src/gate/in-band-error.js";

const { countsTowardCooldown } = failures;

describe("the gate's own failures", () => {
  it.each<[Failure, number, string, boolean]>([
    [failures.ttftTimeout(5), 408, "ttft_timeout", true],
    [failures.ttftEmptyStream(5), 408, "ttft_timeout", true],
    [failures.requestTimeout(5), 408, "request_timeout", true],
    [failures.totalTimeout(5), 408, "request_timeout", true],
    [failures.idleTimeout(5), 504, "upstream_idle_timeout", true],
    [failures.connectTimeout(5), 504, "upstream_connect_error", true],
    [failures.emptyStream(), 502, "upstream_empty_stream", true],
    [failures.truncatedStream(), 502, "upstream_truncated_stream", true],
    [failures.emptyCompletion({ alwaysFallBack: false }), 502, "upstream_empty_completion", true],
    [failures.invalidBody(), 502, "upstream_invalid_body", true],
    [failures.malformedEvent(), 502, "upstream_malformed_event", true],
    [failures.unexplainedFailure(), 502, "response_failed", true],
    [failures.gateOverflow("bytes"), 502, "upstream_error", true],
    [failures.networkFailure(undefined, false), 502, "upstream_connect_error", true],
    [failures.networkFailure(undefined, true), 502, "upstream_error", true],
    [failures.clientAbort(), 499, "client_closed_request", false],
    [failures.writeStall(5), 499, "client_write_stall", false],
    [failures.shutdown(), 503, "gateway_shutdown", true],
    [failures.internal(undefined), 500, "internal_error", false],
  ])("%j", (failure, status, code, retryable) => {
    expect(failure).toMatchObject({ status, code, retryable });
  });

  it("word the timeouts with their length", () => {
    expect(failures.ttftTimeout(30_000).message).toBe("TTFT timeout: no first chunk received (timeout=30000ms)");
    expect(failures.ttftEmptyStream(30_000).message).toBe(
      "TTFT timeout: stream ended before first chunk (timeout=30000ms)",
    );
    for (const failure of [failures.requestTimeout(1500), failures.totalTimeout(1500)]) {
      expect(failure.message).toMatch(/^Request timeout: .+ \(timeout=1500ms\)$/);
    }
  });

  it("word what the Responses API reports", () => {
    expect(failures.unexplainedFailure().message).toBe(
      "Provider reported a failure in the response stream without a reason",
    );
    expect(failures.emptyStream(failures.responsesNoOutput).message).toBe(
      "Provider closed the response stream before producing any output",
    );
  });

  it("fall back whatever the lists say after a TTFT timeout or a billed empty completion", () => {
    expect(failures.ttftTimeout(1).alwaysFallBack).toBe(true);
    expect(failures.ttftEmptyStream(1).alwaysFallBack).toBe(true);
    expect(failures.emptyCompletion({ alwaysFallBack: true }).alwaysFallBack).toBe(true);
    expect(failures.emptyCompletion({ alwaysFallBack: false })).not.toHaveProperty("alwaysFallBack");
    expect(failures.requestTimeout(1)).not.toHaveProperty("alwaysFallBack");
  });

  it("keep the cause out of the message", () => {
    const cause = new Error("connect ECONNREFUSED 10.0.0.7:443");
    for (const failure of [failures.networkFailure(cause, false), failures.internal(cause)]) {
      expect(failure.cause).toBe(cause);
      expect(failure.message).not.toContain("10.0.0.7");
    }
  });
});

describe("a failure by finish reason", () => {
  it.each([
    ["network_error", 502, "network_error"],
    ["insufficient_system_resource", 503, "insufficient_system_resource"],
    ["MALFORMED_FUNCTION_CALL", 502, "MALFORMED_FUNCTION_CALL"],
    ["error", 502, "finish_reason_error"],
    ["ERROR", 502, "finish_reason_error"],
  ])("%s is %i %s", (reason, status, code) => {
    expect(failures.finishReasonFailure(reason)).toMatchObject({ kind: "in-band", status, code, retryable: true });
  });
});

describe("cooldown", () => {
  it.each<[string, boolean, Failure]>([
    ["TTFT timeout", false, failures.ttftTimeout(1)],
    ["stream that ends empty under a TTFT timeout", false, failures.ttftEmptyStream(1)],
    ["request timeout", true, failures.requestTimeout(1)],
    ["idle timeout", true, failures.idleTimeout(1)],
    ["connect timeout", true, failures.connectTimeout(1)],
    ["total timeout", false, failures.totalTimeout(1)],
    ["network error", true, failures.networkFailure(undefined, true)],
    ["empty stream", true, failures.emptyStream()],
    ["truncated stream", true, failures.truncatedStream()],
    ["unexplained failure", true, failures.unexplainedFailure()],
    ["invalid body", true, failures.invalidBody()],
    ["malformed event", true, failures.malformedEvent()],
    ["empty completion", false, failures.emptyCompletion({ alwaysFallBack: true })],
    ["gate overflow", false, failures.gateOverflow("events")],
    ["client that left", false, failures.clientAbort()],
    ["write stall", false, failures.writeStall(1)],
    ["shutdown", false, failures.shutdown()],
    ["bug of ours", false, failures.internal(undefined)],
  ])("%s: %s", (_, counts, failure) => {
    expect(countsTowardCooldown(failure)).toBe(counts);
  });

  it.each([401, 403, 408, 424, 429, 500, 502, 503, 504, 529])("counts %i", (status) => {
    expect(countsTowardCooldown(failureFromHttp(status, "", {}))).toBe(true);
    expect(countsTowardCooldown(failureFromError({ code: status }, undefined, {}))).toBe(true);
  });

  it.each([400, 402, 404, 409, 413, 416, 422, 501])("does not count %i", (status) => {
    expect(countsTowardCooldown(failureFromHttp(status, "", {}))).toBe(false);
    expect(countsTowardCooldown(failureFromError({ code: status }, undefined, {}))).toBe(false);
  });

  it("does not count a policy 403", () => {
    const failure = failureFromError({ code: 403, metadata: { reasons: ["hate"] } }, undefined, {});
    expect(countsTowardCooldown(failure)).toBe(false);
  });

  it("counts an overload", () => {
    expect(countsTowardCooldown(failureFromError({ type: "overloaded_error" }, undefined, {}))).toBe(true);
  });
});
