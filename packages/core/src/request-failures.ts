/** Failures of requests that no upstream is called for. */

import type { Failure } from "./errors.js";

function refused(status: number, code: string, message: string, type?: string): Failure {
  return { kind: "bad-request", status, code, message, type, retryable: false };
}

/** 400: the request is malformed. @param param the field at fault */
export function badRequest(message: string, param?: string, code = "invalid_request"): Failure {
  return { ...refused(400, code, message), param };
}

/** 404 `model_not_found`. Lists nothing: which models exist is not for everybody. */
export function modelNotFound(model: string): Failure {
  return { ...refused(404, "model_not_found", `The model \`${model.slice(0, 200)}\` does not exist.`), param: "model" };
}

/** 400: no target of the model serves the API that was called. */
export function apiNotServed(model: string, api: string): Failure {
  return {
    ...refused(
      400,
      "api_not_served",
      `No target of the model \`${model.slice(0, 200)}\` serves ${api}. Call an API that one of its providers serves.`,
    ),
    param: "model",
  };
}

/** 400: targets of the model serve the API, but none of them this request's metadata. */
export function noTargetForRequest(model: string): Failure {
  return {
    ...refused(
      400,
      "no_target",
      `No target of the model \`${model.slice(0, 200)}\` serves the metadata of this request.`,
    ),
    param: "model",
  };
}

/** 400: the provider that holds what the request refers to is no target of the model. */
export function conversationElsewhere(model: string): Failure {
  const message = `The model \`${model.slice(0, 200)}\` has no target at the provider that holds the conversation. Call the model that the conversation began with.`;
  return { ...refused(400, "conversation_elsewhere", message), param: "model" };
}

/** 508: a provider's `baseUrl` leads back to this gateway, which would call itself without end. */
export function loopDetected(): Failure {
  return refused(
    508,
    "loop_detected",
    "The gateway was called by itself: the `baseUrl` of a provider leads back to it.",
  );
}

/** The host's own auth said no. */
export function authRejected(status: 401 | 403): Failure {
  return status === 401
    ? refused(401, "unauthorized", "Authentication is required.")
    : refused(403, "forbidden", "You are not allowed to make this request.");
}

/** Tells a failure from the value that was wanted. */
export function isFailure(value: object): value is Failure {
  return "retryable" in value && "kind" in value;
}
