/**
 * The providers' names for failures and the HTTP status each of them stands for.
 *
 * Names are compared in one spelling, lower-case snake: `ThrottlingException`, `throttlingException` and
 * `throttling_exception` are one name. Where two vendors mean different things by one spelling, the exact table wins.
 *
 * @see https://developers.openai.com/docs/guides/error-codes
 * @see https://platform.claude.com/docs/en/api/errors
 * @see https://ai.google.dev/gemini-api/docs/api-errors
 * @see https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ResponseStream.html
 */

/** The provider's name for "busy", whose documented 529 no proxy or SDK knows. */
export const overloadedError = "overloaded_error";

const byStatus: Readonly<Record<number, string>> = {
  400: `invalid_request_error invalid_request bad_request context_length_exceeded invalid_prompt
    previous_response_not_found content_policy_violation content_filter cyber_policy bio_policy
    data_residency_mismatch image_content_policy_violation invalid_image invalid_image_format invalid_base64_image
    invalid_image_url invalid_image_mode image_too_large image_too_small image_parse_error image_file_too_large
    unsupported_image_media_type empty_image_file failed_to_download_image image_file_not_found invalid_argument
    failed_precondition parameter_unknown validation_exception service_quota_exceeded
    client_specified_an_invalid_argument operation_was_attempted_past_the_valid_range
    the_system_is_not_in_a_state_required_for_the_operation_s_execution`,
  401: `invalid_api_key authentication_error authentication unauthenticated unauthorized
    the_request_does_not_have_valid_authentication_credentials`,
  402: "billing_error payment_required insufficient_balance",
  403: `permission_error permission_denied access_denied forbidden unsupported_country_region_territory
    the_caller_does_not_have_permission_to_execute_the_specified_operation`,
  404: `not_found_error not_found model_not_found deployment_not_found resource_not_found
    some_requested_entity_was_not_found`,
  405: "method_not_allowed",
  408: "model_timeout request_timeout",
  409: "conflict_error conflict already_exists some_entity_that_we_attempted_to_create_already_exists",
  413: "request_too_large payload_too_large content_too_large request_entity_too_large",
  416: "out_of_range range_not_satisfiable requested_range_not_satisfiable",
  422: "unprocessable_entity unprocessable_content validation",
  424: "model_error model_stream_error failed_dependency generation",
  429: `rate_limit_exceeded rate_limit_error slow_down too_many_requests insufficient_quota credit_balance_exhausted
    usage_not_included usage_limit_reached billing_hard_limit_reached billing_not_active
    exceeded_current_quota_error quota_exceeded resource_exhausted throttling model_not_ready
    some_resource_has_been_exhausted`,
  500: `server_error api_error internal internal_error internal_server_error internal_server internal_failure
    incomplete_generation data_loss unrecoverable_data_loss_or_corruption`,
  501: "unimplemented not_implemented operation_is_not_implemented_or_not_supported",
  502: "bad_gateway network_error vector_store_timeout the_operation_was_cancelled",
  503: `service_unavailable server_is_overloaded overloaded overloaded_error unavailable insufficient_system_resource
    the_service_is_currently_unavailable`,
  504: "timeout_error gateway_timeout deadline_exceeded deadline_expired_before_operation_could_complete",
};

/** Google's RPC codes that mean something else, or nothing, in lower case: `cancelled` is also how a response ends. */
const exactNames: ReadonlyMap<string, number> = new Map([
  ["OUT_OF_RANGE", 400],
  ["OutOfRange", 400],
  ["ABORTED", 409],
  ["Aborted", 409],
  ["CANCELLED", 502],
  ["Cancelled", 502],
  ["UNKNOWN", 500],
  ["Unknown", 500],
]);

/** Text Generation Inference reports a full queue so. In any other field the word means what it says. */
const fullQueue = { field: "error_type", name: "overloaded", status: 429 };

const foldedNames: ReadonlyMap<string, number> = new Map(
  Object.entries(byStatus).flatMap(([status, names]) =>
    names.split(/\s+/).map((name) => [name, Number(status)] as const),
  ),
);

/** These win over a number beside them: the number is the vendor's, the status is this product's decision. */
const deviatingNames: ReadonlySet<string> = new Set([overloadedError, "vector_store_timeout"]);

/** Limits that waiting a moment does not lift. */
const exhaustedNames: ReadonlySet<string> = new Set([
  "insufficient_quota",
  "credit_balance_exhausted",
  "usage_not_included",
  "usage_limit_reached",
  "billing_hard_limit_reached",
  "billing_not_active",
  "exceeded_current_quota_error",
]);

export interface KnownName {
  /** Lower-case snake. */
  readonly name: string;
  readonly status: number;
  /** Wins over numbers. */
  readonly deviates: boolean;
  /** A quota or a balance is used up: not retryable, whatever the status. */
  readonly exhausted: boolean;
}

/** Longer strings are sentences. */
const maxNameLength = 120;

/** `RateLimitError`, `rate-limit error` and `RATE_LIMIT_ERROR` become `rate_limit_error`. */
export function foldName(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1_$2")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "_")
    .replace(/^_|_$/g, "");
}

/**
 * Looks a name up as it stands, then without its `Error` or `Exception`, then with `Error`.
 *
 * @param field where the name stood
 */
export function lookUpName(name: string, field: string): KnownName | undefined {
  if (name.length > maxNameLength) return undefined;
  const exact = exactNames.get(name);
  const folded = foldName(name);
  if (exact !== undefined) return { name: folded, status: exact, deviates: exact === 502, exhausted: false };
  if (field === fullQueue.field && folded === fullQueue.name) return known(folded, fullQueue.status);
  const bare = folded.replace(/_(?:error|exception)$/, "");
  // A single bare word such as `model` is no failure's name only because `model_error` is one.
  const candidates = bare.includes("_") || bare !== folded ? [folded, bare, `${bare}_error`] : [folded];
  for (const candidate of candidates) {
    const status = foldedNames.get(candidate);
    if (status !== undefined) return known(candidate, status);
  }
  return undefined;
}

function known(name: string, status: number): KnownName {
  return { name, status, deviates: deviatingNames.has(name), exhausted: exhaustedNames.has(name) };
}
