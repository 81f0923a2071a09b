import { describe, expect, it } from "vitest";
import { applyDeviations, isRetryableStatus, resolveHttpStatus, resolveStatus } from "../../src/gate/status.js";

/** One line a row: status, whether the same target may be tried again, names. */
const table = `
500 yes server_error api_error INTERNAL UNKNOWN DATA_LOSS internal_server_error incomplete_generation
429 yes rate_limit_exceeded rate_limit_error slow_down RESOURCE_EXHAUSTED quota_exceeded too_many_requests_error
429 yes throttlingException ThrottlingException ModelNotReadyException modelNotReadyException
503 yes server_is_overloaded service_unavailable_error UNAVAILABLE service_unavailable insufficient_system_resource
503 yes serviceUnavailableException ServiceUnavailableException
429 no insufficient_quota credit_balance_exhausted usage_not_included usage_limit_reached
401 no invalid_api_key authentication authentication_error UNAUTHENTICATED
402 no billing_error payment_required insufficient_balance
403 no unsupported_country_region_territory permission_error PERMISSION_DENIED permission_denied AccessDeniedException
404 no model_not_found not_found_error NOT_FOUND not_found DeploymentNotFound ResourceNotFoundException
400 no context_length_exceeded invalid_request_error invalid_prompt previous_response_not_found
400 no content_policy_violation content_filter cyber_policy bio_policy image_content_policy_violation
400 no data_residency_mismatch invalid_image invalid_image_format invalid_base64_image invalid_image_url
400 no image_too_large image_too_small image_parse_error invalid_image_mode image_file_too_large
400 no unsupported_image_media_type empty_image_file failed_to_download_image image_file_not_found
400 no INVALID_ARGUMENT FAILED_PRECONDITION OUT_OF_RANGE invalid_request failed_precondition parameter_unknown
400 no validationException ValidationException ServiceQuotaExceededException
502 yes vector_store_timeout CANCELLED network_error some_future_error unknown
409 no conflict_error ABORTED ALREADY_EXISTS
413 no request_too_large
416 no out_of_range
501 no UNIMPLEMENTED
504 yes timeout_error DEADLINE_EXCEEDED gateway_timeout
408 yes modelTimeoutException ModelTimeoutException
424 yes modelStreamErrorException ModelStreamErrorException ModelErrorException ModelError
500 yes internalServerException InternalServerException InternalFailure
`;

const rows = table
  .trim()
  .split("\n")
  .flatMap((line) => {
    const [status, again, ...names] = line.split(" ");
    return names.map((name) => ({ name, status: Number(status), retryable: again === "yes" }));
  });

describe("names", () => {
  it.each(rows)("maps $name to $status, in any of the four fields", ({ name, status, retryable }) => {
    for (const field of ["code", "status", "type", "error_type"]) {
      expect(resolveStatus({ message: "x", [field]: name })).toMatchObject({ status, retryable });
      expect(resolveStatus("x y", { error: "x y", [field]: name })).toMatchObject({ status, retryable });
    }
  });

  it.each([
    ["bad_request", 400],
    ["unauthorized", 401],
    ["forbidden", 403],
    ["payload_too_large", 413],
    ["unprocessable_entity", 422],
    ["too_many_requests", 429],
    ["Too Many Requests", 429],
    ["not_implemented", 501],
    ["bad_gateway", 502],
  ])("maps the reason phrase %s to %i", (code, status) => {
    expect(resolveStatus({ code }).status).toBe(status);
  });

  it.each([
    ["BadRequestError", 400],
    ["AuthenticationError", 401],
    ["PermissionDeniedError", 403],
    ["NotFoundError", 404],
    ["ConflictError", 409],
    ["UnprocessableEntityError", 422],
    ["RateLimitError", 429],
    ["InternalServerError", 500],
    ["APIError", 500],
    ["NotImplementedError", 501],
    ["ServiceUnavailableError", 503],
    ["ResourceExhausted", 429],
    ["APIConnectionError", 502],
  ])("maps the class name %s to %i", (type, status) => {
    expect(resolveStatus({ type }).status).toBe(status);
  });

  it.each([
    ["The service is currently unavailable", 503],
    ["Client specified an invalid argument", 400],
    ["Some resource has been exhausted", 429],
  ])("maps the RPC wording that xAI uses as a code, %s, to %i", (code, status) => {
    expect(resolveStatus("x y", { code, error: "x y" })).toMatchObject({ status, code });
  });

  it.each([
    ["overloaded", 429],
    ["validation", 422],
    ["generation", 424],
    ["incomplete_generation", 500],
  ])("maps the error_type %s to %i", (error_type, status) => {
    expect(resolveStatus("x y", { error: "x y", error_type })).toMatchObject({ status, code: error_type });
  });

  it("takes overloaded for a full queue only in error_type", () => {
    expect(resolveStatus({ type: "overloaded" }).status).toBe(503);
  });

  it("does not take a bare word for a name because word_error is one", () => {
    expect(resolveStatus({ type: "model" }).status).toBe(502);
  });

  it("takes the code before the type", () => {
    const resolved = resolveStatus({ type: "invalid_request_error", code: "rate_limit_exceeded" });
    expect(resolved).toMatchObject({ status: 429, code: "rate_limit_exceeded" });
  });

  it("takes the type when the code maps to nothing", () => {
    const error = { message: "x", type: "too_many_requests_error", param: "quota", code: "request_quota_exceeded" };
    expect(resolveStatus(error)).toMatchObject({ status: 429, code: "request_quota_exceeded", retryable: true });
  });

  it("takes the error object before its carrier", () => {
    const resolved = resolveStatus({ code: "server_error" }, { code: "rate_limit_exceeded" });
    expect(resolved).toMatchObject({ status: 500, code: "server_error" });
  });

  it("does not guess from a sentence", () => {
    expect(resolveStatus({ message: "quota exceeded" })).toMatchObject({ status: 502, code: undefined });
    expect(resolveStatus("too many requests")).toMatchObject({ status: 502, code: "too_many_requests" });
  });

  it("takes a string error of one word for a name", () => {
    expect(resolveStatus("rate_limit_exceeded", { error: "rate_limit_exceeded" }).status).toBe(429);
  });

  it("looks into an error that a proxy has wrapped", () => {
    expect(resolveStatus({ error: { type: "rate_limit_error" } }).status).toBe(429);
    expect(resolveStatus([{ code: 503 }]).status).toBe(503);
  });
});

describe("numbers", () => {
  it.each(["code", "status", "http_status_code", "status_code"])("takes %s, as a number or as digits", (field) => {
    expect(resolveStatus({ [field]: 422, type: "server_error" }).status).toBe(422);
    expect(resolveStatus({ [field]: "422", type: "server_error" }).status).toBe(422);
    expect(resolveStatus({ message: "x" }, { [field]: 422 }).status).toBe(422);
  });

  it.each([200, 399, 600, 1300, "1300", 3505, 429.5, "0429", "4e2", -429, null, true])("is no status: %s", (code) => {
    expect(resolveStatus({ code, type: "rate_limit_error" }).status).toBe(429);
    expect(resolveStatus({ code, message: "x" }).status).toBe(502);
  });

  it("ignores Bedrock's originalStatusCode", () => {
    const exception = { message: "x", originalStatusCode: 429, code: "modelStreamErrorException" };
    expect(resolveStatus(exception).status).toBe(424);
  });

  it.each([400, 401, 402, 403, 404, 405, 409, 413, 416, 418, 422, 425, 501])("does not retry %i", (status) => {
    expect(isRetryableStatus(status)).toBe(false);
    expect(resolveStatus({ code: status }).retryable).toBe(false);
  });

  it.each([408, 424, 429, 500, 502, 503, 504, 520])("retries %i", (status) => {
    expect(isRetryableStatus(status)).toBe(true);
    expect(resolveStatus({ code: status }).retryable).toBe(true);
  });

  it("does not retry a used-up quota behind a number", () => {
    expect(resolveStatus({ code: "429", type: "insufficient_quota" })).toMatchObject({ status: 429, retryable: false });
  });
});

describe("deviations", () => {
  it.each([undefined, 429, 500, 529, "overloaded"])("makes overloaded_error a 503 that was 529 beside %s", (code) => {
    const resolved = resolveStatus({ type: "overloaded_error", code });
    expect(resolved).toMatchObject({ status: 503, originalStatus: 529, retryable: true });
  });

  it("makes overloaded_error of a carrier a 503", () => {
    expect(resolveStatus({ code: 500 }, { type: "overloaded_error" }).status).toBe(503);
  });

  it("keeps vector_store_timeout and CANCELLED at 502 whatever number stands beside them", () => {
    expect(resolveStatus({ code: "vector_store_timeout", status: 504 }).status).toBe(502);
    expect(resolveStatus({ code: 499, status: "CANCELLED" })).toMatchObject({ status: 502, code: "CANCELLED" });
    expect(resolveStatus({ code: 400, status: "CANCELLED" }).status).toBe(502);
  });

  it("does not take the state of a response for CANCELLED", () => {
    const resolved = resolveStatus({ code: "rate_limit_exceeded" }, { object: "response", status: "cancelled" });
    expect(resolved).toMatchObject({ status: 429, code: "rate_limit_exceeded" });
  });

  it("replaces 499 and 529", () => {
    expect(applyDeviations(499)).toEqual({ status: 502, originalStatus: 499 });
    expect(applyDeviations(529)).toEqual({ status: 503, originalStatus: 529 });
    expect(applyDeviations(503)).toEqual({ status: 503 });
    expect(resolveStatus({ code: 529 })).toMatchObject({ status: 503, originalStatus: 529 });
  });
});

describe("resolveHttpStatus", () => {
  it("keeps the status of the answer whatever the body says", () => {
    expect(resolveHttpStatus(500, { code: 429, type: "rate_limit_error" }).status).toBe(500);
  });

  it("applies the deviations, those by name too", () => {
    expect(resolveHttpStatus(529, undefined)).toMatchObject({ status: 503, originalStatus: 529 });
    expect(resolveHttpStatus(500, { type: "overloaded_error" })).toMatchObject({ status: 503, originalStatus: 529 });
    expect(resolveHttpStatus(499, undefined).status).toBe(502);
  });

  it.each([302, 200, 600])("makes %i, which is no error, a 502", (status) => {
    expect(resolveHttpStatus(status, undefined).status).toBe(502);
  });
});

describe("code", () => {
  it.each<[string, unknown, unknown, string | undefined]>([
    ["a known status name", { code: 503, status: "UNAVAILABLE" }, undefined, "UNAVAILABLE"],
    ["not an unknown status", { code: "server_error", status: "failed" }, undefined, "server_error"],
    ["a number as text", { code: 400, type: "BadRequestError" }, undefined, "400"],
    ["a vendor's number", { code: "1300", type: "rate_limit_error" }, undefined, "1300"],
    ["error_type before type", { type: "a_b", error_type: "c_d" }, undefined, "c_d"],
    ["the type", { type: "api_error" }, { type: "error" }, "api_error"],
    ["the carrier's", { message: "x" }, { type: "error", code: "slow_down" }, "slow_down"],
    ["a string error in snake case", "Model is loading!", { error: "Model is loading!" }, "model_is_loading"],
    ["never the event's type", { type: "error", message: "x" }, undefined, undefined],
    ["never the carrier's event type", { message: "x" }, { type: "response.failed", object: "error" }, undefined],
    ["never a URI", { type: "about:blank", status: 429 }, undefined, undefined],
    ["no nothing spelled out", { type: "None", code: "null", status: "" }, undefined, undefined],
    ["no long sentence", "x ".repeat(200), undefined, undefined],
  ])("is %s", (_, error, carrier, code) => {
    expect(resolveStatus(error, carrier).code).toBe(code);
  });

  it("is the number of LiteLLM, whose type and param say None", () => {
    const resolved = resolveStatus({ message: "x", type: "None", param: "None", code: "503" });
    expect(resolved).toMatchObject({ status: 503, code: "503" });
  });
});

describe("policy", () => {
  it.each<[string, object]>([
    ["reasons", { code: 403, metadata: { reasons: ["violence"] } }],
    ["flagged input", { code: 403, metadata: { flagged_input: "x" } }],
    ["a guardrail", { code: 403, metadata: { error_type: "guardrail_blocked" } }],
    ["a policy code", { status: 403, code: "content_policy_violation" }],
    ["a moderation type", { code: 403, type: "moderation" }],
  ])("is set on a 403 with %s", (_, error) => {
    expect(resolveStatus(error)).toMatchObject({ status: 403, policy: true });
  });

  it("is not set on a credential 403 or on another status", () => {
    expect(resolveStatus({ type: "permission_error" })).toMatchObject({ status: 403, policy: false });
    expect(resolveStatus({ code: 403, metadata: { reasons: [] } }).policy).toBe(false);
    expect(resolveStatus({ code: "content_policy_violation" })).toMatchObject({ status: 400, policy: false });
  });
});
