/** Google's error body. https://ai.google.dev/gemini-api/docs/generate-content/api-errors */

import type { Failure } from "../../errors.js";

/** https://github.com/googleapis/googleapis/blob/master/google/rpc/code.proto */
const statusNames: ReadonlyMap<number, string> = new Map([
  [400, "INVALID_ARGUMENT"],
  [401, "UNAUTHENTICATED"],
  [403, "PERMISSION_DENIED"],
  [404, "NOT_FOUND"],
  [408, "DEADLINE_EXCEEDED"],
  [409, "ABORTED"],
  [416, "OUT_OF_RANGE"],
  [429, "RESOURCE_EXHAUSTED"],
  [499, "CANCELLED"],
  [500, "INTERNAL"],
  [501, "UNIMPLEMENTED"],
  [502, "UNAVAILABLE"],
  [503, "UNAVAILABLE"],
  [504, "DEADLINE_EXCEEDED"],
]);

const rpcCode = /^[A-Z]+(?:_[A-Z]+)*$/;

export interface GoogleError {
  readonly error: {
    /** The HTTP status: Google's clients read a number here. */
    readonly code: number;
    readonly message: string;
    readonly status: string;
    /** Where the status is not the failure's own code: that code, as Google words a reason. */
    readonly details?: readonly object[];
  };
}

export function googleError(failure: Failure): GoogleError {
  const { status: code, message } = failure;
  if (rpcCode.test(failure.code)) return { error: { code, message, status: failure.code } };
  const status = statusNames.get(code) ?? (code >= 500 ? "INTERNAL" : "INVALID_ARGUMENT");
  const reason = { "@type": "type.googleapis.com/google.rpc.ErrorInfo", reason: failure.code };
  return { error: { code, message, status, details: [reason] } };
}
