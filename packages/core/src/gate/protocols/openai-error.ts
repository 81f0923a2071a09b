/** OpenAI's error body. https://developers.openai.com/docs/guides/error-codes */

import type { Failure } from "../../errors.js";

/** The type of an error that is not the provider's own, by status. */
const types: ReadonlyMap<number, string> = new Map([
  [401, "authentication_error"],
  [403, "permission_error"],
  [404, "not_found_error"],
  [408, "timeout_error"],
  [409, "conflict_error"],
  [429, "rate_limit_error"],
  [504, "timeout_error"],
]);

export function openaiErrorType(failure: Failure): string {
  return (
    failure.type ?? types.get(failure.status) ?? (failure.status >= 500 ? "server_error" : "invalid_request_error")
  );
}

export function openaiErrorBody(failure: Failure): string {
  return JSON.stringify({
    error: {
      message: failure.message,
      type: openaiErrorType(failure),
      param: failure.param ?? null,
      code: failure.code,
    },
  });
}
