/**
 * A parsed value → a failure, or nothing.
 *
 * Only the top level of a frame is looked at. Deeper down an `error` is often harmless: a filter that could not run, a
 * tool that failed, `response.error: null`. Matching is by structure, so a model that writes about errors is not one.
 */

import type { Failure } from "../errors.js";
import { messageOf, presentable } from "./error-message.js";
import { lookUpName } from "./error-names.js";
import { isObject, type JsonObject } from "./json-value.js";
import type { ParsedFrame } from "./protocols/protocol.js";
import { retryHintMs } from "./retry-hint.js";
import {
  errorStatus,
  resolveHttpStatus,
  resolveStatus,
  taxonomyOf,
  text,
  typeOf,
  type ResolvedStatus,
} from "./status.js";
import type { FailureVerdict } from "./verdict.js";

export interface InBandErrorTraits {
  /** Chat Completions: `object: "error"`, a flat `{message, code or the type of a failure}` without choices, `x_groq.error`. */
  readonly flatErrors?: boolean;
  /** Responses API: the client's message is "wording (taxonomy)". */
  readonly nameInMessage?: boolean;
}

/** The code of a failure to which the provider gave none. */
const unnamed = "upstream_error";

/** In characters: an error that is no JSON may be anything, a stack trace too. */
const maxTextLength = 500;

/**
 * A failure that the frame reports. Finish reasons and `response.failed` are left to the protocols, which pass what
 * they find to {@link failureFromError}.
 */
export function findInBandError(frame: ParsedFrame, traits: InBandErrorTraits): FailureVerdict | undefined {
  const { value } = frame;
  const named = frame.source !== "json" && frame.event === "error";
  if (isObject(value)) return verdictOf(failureIn(value, named, frame.source, traits));
  if (Array.isArray(value)) {
    for (const element of value) {
      const failure = isObject(element) ? failureIn(element, false, frame.source, traits) : undefined;
      if (failure !== undefined) return verdictOf(failure);
    }
    return named && frame.source === "event" ? verdictOf(failureFromError(value, undefined, traits)) : undefined;
  }
  if (frame.source === "stray") return strayText(frame);
  return named ? verdictOf(failureFromText(typeof value === "string" ? value : frame.data)) : undefined;
}

/**
 * A failure out of an error object found elsewhere: `response.error`, a finish reason, a Bedrock exception.
 *
 * @param carrier the object that carries the error, or undefined where they are one
 */
export function failureFromError(error: unknown, carrier: unknown, traits: InBandErrorTraits): Failure {
  return describe(error, carrier, resolveStatus(error, carrier), traits, "in-band");
}

/**
 * A non-2xx answer. It keeps its HTTP status, after the deviations; the rest is read from the body where that is a JSON
 * error. A status that is no error (a redirect) becomes 502.
 */
export function failureFromHttp(status: number, body: string, traits: InBandErrorTraits): Failure {
  const parsed = parse(body);
  const value: unknown = Array.isArray(parsed) ? parsed[0] : parsed;
  const listed: unknown = isObject(value) && Array.isArray(value["errors"]) ? value["errors"][0] : undefined;
  const nested: unknown = isObject(value) ? (present(value["error"]) ?? listed) : undefined;
  const error = nested ?? value;
  const carrier = nested === undefined ? undefined : value;
  const failure = describe(error, carrier, resolveHttpStatus(status, error, carrier), traits, "http");
  if (isObject(value)) return failure;
  return { ...failure, code: unnamed, message: `The provider answered with HTTP status ${status}.` };
}

function verdictOf(failure: Failure | undefined): FailureVerdict | undefined {
  return failure === undefined ? undefined : { kind: "failure", failure };
}

/** Neither a name nor a status nor a word of the provider's. */
export function saysNothing({ status, code, message }: Failure): boolean {
  return status === 502 && code === unnamed && message === genericMessage(undefined);
}

function failureIn(
  value: JsonObject,
  named: boolean,
  source: ParsedFrame["source"],
  traits: InBandErrorTraits,
): Failure | undefined {
  const error = present(value["error"]);
  if (error !== undefined) {
    // `"error": true` only says that the rest is one.
    return error === true ? failureFromError(value, undefined, traits) : failureFromError(error, value, traits);
  }
  const isFlat =
    named ||
    value["type"] === "error" ||
    value["event_type"] === "error" ||
    isProblem(value, source) ||
    (source !== "event" && isBareError(value)) ||
    (traits.flatErrors === true && isFlatError(value));
  if (isFlat) return failureFromError(value, undefined, traits);
  const groq = traits.flatErrors === true && isObject(value["x_groq"]) ? present(value["x_groq"]["error"]) : undefined;
  return groq === undefined ? undefined : failureFromError(groq, undefined, traits);
}

/** `null`, `false`, `""` and their spellings as text are no error; an empty object is one. */
function present(error: unknown): unknown {
  if (error === null || error === undefined || error === false || error === 0) return undefined;
  return typeof error === "string" ? text(error) : error;
}

const outputFields = [
  "choices",
  "candidates",
  "output",
  "content",
  "delta",
  "response",
  "interaction",
  "step",
] as const;

function hasOutputField(value: JsonObject): boolean {
  return outputFields.some((field) => field in value) || isObject(value["message"]);
}

/** problem+json: `{"status": 429, "title": "Too Many Requests"}`. A whole body may have the number elsewhere too. */
function isProblem(value: JsonObject, source: ParsedFrame["source"]): boolean {
  if (hasOutputField(value) || (source === "event" && namesEvent(value))) return false;
  const numbers = [value["status"], value["status_code"], value["statusCode"], value["http_status_code"]];
  if (source !== "event") numbers.push(value["code"]);
  return numbers.some((number) => errorStatus(number) !== undefined);
}

function isFlatError(value: JsonObject): boolean {
  if (value["object"] === "error") return true;
  if (hasOutputField(value) || text(value["message"]) === undefined) return false;
  const { code, error_type: errorType } = value;
  return (
    typeof code === "number" || text(code) !== undefined || text(errorType) !== undefined || namesFailure(value["type"])
  );
}

/** An event of a stream has a type that says which: a number in it is no HTTP status. A problem's type is a URI. */
function namesEvent(value: JsonObject): boolean {
  const type = text(value["type"]) ?? text(value["event_type"]);
  return type !== undefined && !/[:/]/.test(type) && !namesFailure(type);
}

/** `{"type": "info", "message"}` is news, not an error. */
function namesFailure(type: unknown): boolean {
  const name = text(type);
  return name !== undefined && (/error|exception|fail/i.test(name) || lookUpName(name, "type") !== undefined);
}

/**
 * Outside the framing: the value of an SSE field named `error` is the error itself, and so may be a whole body. Bare
 * JSON of any sort comes the same way, so it must look like an error: a sentence, or a name that is known.
 */
function isBareError(value: JsonObject): boolean {
  if (isFlatError(value)) return true;
  return !hasOutputField(value) && taxonomyOf(value) !== undefined && resolveStatus(value).status !== 502;
}

/** Text in an SSE field named `error`. What opens like JSON is a bare line that was cut off. */
function strayText(frame: ParsedFrame): FailureVerdict | undefined {
  const content = typeof frame.value === "string" ? frame.value : frame.data;
  if (text(content) === undefined || content.trim() === "false" || /^\s*[[{]/.test(content)) return undefined;
  return verdictOf(failureFromText(content));
}

/** No status is guessed from a sentence. A single word may be a known name, or a status. */
function failureFromText(content: string): Failure {
  const { status, originalStatus, code, retryable } = resolveStatus(content.trim());
  return {
    kind: "in-band",
    status,
    ...(originalStatus === undefined ? {} : { originalStatus }),
    code: status === 502 ? unnamed : (code ?? unnamed),
    message: presentable(content, maxTextLength) ?? genericMessage(undefined),
    retryable,
  };
}

function describe(
  error: unknown,
  carrier: unknown,
  resolved: ResolvedStatus,
  traits: InBandErrorTraits,
  kind: "in-band" | "http",
): Failure {
  const wording = messageOf(error, carrier);
  const { status, originalStatus, code, retryable, policy } = resolved;
  const type = typeOf(error, carrier);
  const param = paramOf(error);
  const retryAfterMs = status === 429 || status === 503 ? retryHintMs(error, carrier, wording) : undefined;
  return {
    kind,
    status,
    code: code ?? unnamed,
    message: clientMessage(wording, code, error, carrier, traits),
    retryable,
    ...(originalStatus === undefined ? {} : { originalStatus }),
    ...(type === undefined ? {} : { type }),
    ...(param === undefined ? {} : { param }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(policy ? { policy } : {}),
  };
}

function clientMessage(
  wording: string | undefined,
  code: string | undefined,
  error: unknown,
  carrier: unknown,
  traits: InBandErrorTraits,
): string {
  if (wording === undefined) return genericMessage(code);
  const name = traits.nameInMessage === true ? taxonomyOf(error, carrier) : undefined;
  return name === undefined || wording.endsWith(`(${name})`) ? wording : `${wording} (${name})`;
}

function genericMessage(code: string | undefined): string {
  return `The provider reported an error${code === undefined ? "" : ` (${code})`}.`;
}

function paramOf(error: unknown): string | null | undefined {
  const param = isObject(error) ? error["param"] : undefined;
  return param === null ? null : text(param);
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
