/** Errors as the AWS SDKs read them. https://docs.aws.amazon.com/bedrock/latest/APIReference/CommonErrors.html */

import type { Failure } from "../../errors.js";
import { encodeAwsException } from "../aws-frames.js";

/** The exceptions of the operations, by status. */
const exceptions: ReadonlyMap<number, string> = new Map([
  [401, "UnrecognizedClientException"],
  [403, "AccessDeniedException"],
  [404, "ResourceNotFoundException"],
  [408, "ModelTimeoutException"],
  [409, "ConflictException"],
  [424, "ModelErrorException"],
  [429, "ThrottlingException"],
  [503, "ServiceUnavailableException"],
  [504, "ModelTimeoutException"],
]);

const exceptionName = /^[A-Za-z]{1,80}Exception$/;

/** The provider's own name where it sent one, in the spelling of an answer that is no stream. */
function exceptionOf({ code, status }: Failure): string {
  if (exceptionName.test(code)) return code.charAt(0).toUpperCase() + code.slice(1);
  return exceptions.get(status) ?? (status >= 500 ? "InternalServerException" : "ValidationException");
}

export function awsErrorBody({ message }: Failure): string {
  return JSON.stringify({ message });
}

/** The SDKs take the name of an exception from here. */
export function awsErrorHeaders(failure: Failure): Readonly<Record<string, string>> {
  return { "x-amzn-errortype": exceptionOf(failure) };
}

/** The exceptions that a stream may end with. https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ResponseStream.html */
const streamExceptions: ReadonlyMap<number, string> = new Map([
  [400, "validationException"],
  [429, "throttlingException"],
  [500, "internalServerException"],
  [503, "serviceUnavailableException"],
]);

export function awsExceptionEvent(failure: Failure): Uint8Array {
  // Of the others this one says the most: an error occurred while the response was streamed.
  return encodeAwsException(streamExceptions.get(failure.status) ?? "modelStreamErrorException", {
    message: failure.message,
  });
}
