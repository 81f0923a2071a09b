/**
 * What a provider's error says of itself → the HTTP status it stands for.
 *
 * Order: a name that deviates, a number, a name, 502. Numbers and names are looked for in the error object first, then
 * in the object that carries it (the event, the body, the response).
 */

import { isObject, type JsonObject } from "./json-value.js";
import { foldName, lookUpName, overloadedError, type KnownName } from "./error-names.js";

export interface ResolvedStatus {
  /** 400 to 599. */
  readonly status: number;
  /** The status before the deviations, where they changed it. */
  readonly originalStatus?: number;
  /** The provider's own, undefined where it sent none. */
  readonly code: string | undefined;
  readonly retryable: boolean;
  /** A 403 for policy or moderation. */
  readonly policy: boolean;
}

const numberFields = ["code", "status", "http_status_code", "status_code", "statusCode"] as const;
const nameFields = ["code", "status", "type", "error_type", "__type"] as const;

/** Errors nested deeper than this are no longer looked into. */
const maxNesting = 3;

/**
 * @param error the error object, or the string that stands in its place
 * @param carrier the object that carries it, if different
 */
export function resolveStatus(error: unknown, carrier?: unknown): ResolvedStatus {
  const places = placesOf(error, carrier);
  const names = namesIn(places, error);
  const number = errorStatus(error) ?? numberIn(places);
  const found = names.find((name) => name.deviates)?.status ?? number ?? names[0]?.status ?? 502;
  return resolved(found, names, places, error);
}

/** As {@link resolveStatus}, for an answer whose HTTP status is known: only the deviations change it. */
export function resolveHttpStatus(status: number, error: unknown, carrier?: unknown): ResolvedStatus {
  const places = placesOf(error, carrier);
  const names = namesIn(places, error);
  const found = names.find((name) => name.deviates)?.status ?? (isErrorStatus(status) ? status : 502);
  return resolved(found, names, places, error);
}

function resolved(
  found: number,
  names: readonly KnownName[],
  places: readonly JsonObject[],
  error: unknown,
): ResolvedStatus {
  // Anthropic's documented status for this name is 529, whatever number a proxy put beside it.
  const isOverload = names.some((name) => name.name === overloadedError);
  const { status, originalStatus } = applyDeviations(isOverload ? 529 : found);
  return {
    status,
    ...(originalStatus === undefined ? {} : { originalStatus }),
    code: codeIn(places) ?? codeOfText(error),
    retryable: names[0]?.exhausted !== true && isRetryableStatus(status),
    policy: status === 403 && places.some(hasPolicyReason),
  };
}

/** Whether the same request may succeed at the same target a moment later, judged by the status alone. */
export function isRetryableStatus(status: number): boolean {
  return status === 408 || status === 424 || status === 429 || (status >= 500 && status !== 501);
}

/** 499 would read as "the client left", and 529 is known to few clients. */
export function applyDeviations(status: number): { status: number; originalStatus?: number } {
  if (status === 499) return { status: 502, originalStatus: 499 };
  if (status === 529) return { status: 503, originalStatus: 529 };
  return { status };
}

/** The name by which a failure is known: never a number, and the one that gave the status where one did. */
export function taxonomyOf(error: unknown, carrier?: unknown): string | undefined {
  const candidates = placesOf(error, carrier).flatMap((place) =>
    nameFields.flatMap((field) => {
      const name = nameAt(place, field);
      if (name === undefined || /^-?\d+$/.test(name)) return [];
      const status = lookUpName(name, field)?.status;
      // Any other word in `status` is a state (`failed`), not a name.
      return field === "status" && status === undefined ? [] : [{ name, status }];
    }),
  );
  return (candidates.find((candidate) => candidate.status !== undefined) ?? candidates[0])?.name;
}

/** The error object and its carrier, in the order in which they are looked at. */
export function placesOf(error: unknown, carrier?: unknown): JsonObject[] {
  const places: JsonObject[] = [];
  let inner = error;
  for (let depth = 0; depth < maxNesting; depth += 1) {
    if (Array.isArray(inner)) inner = inner[0];
    if (!isObject(inner)) break;
    places.unshift(inner);
    // Some proxies wrap the provider's error in one of their own.
    inner = inner["error"];
  }
  if (isObject(carrier) && carrier !== error) places.push(carrier);
  return places;
}

/** A string that says something: some proxies write their language's "nothing" as text. */
export function text(value: unknown): string | undefined {
  if (typeof value !== "string") return undefined;
  const trimmed = value.trim();
  return trimmed === "" || trimmed === "None" || trimmed === "null" ? undefined : trimmed;
}

/** A number, or three digits as a string, of 400 to 599. */
export function errorStatus(value: unknown): number | undefined {
  const number = typeof value === "string" && /^\s*\d{3}\s*$/.test(value) ? Number(value) : value;
  return typeof number === "number" && isErrorStatus(number) ? number : undefined;
}

/** The error's own type, where it has one that names a failure. */
export function typeOf(error: unknown, carrier?: unknown): string | undefined {
  for (const place of placesOf(error, carrier)) {
    const type = nameAt(place, "type");
    if (type !== undefined) return type;
  }
  return undefined;
}

function isErrorStatus(status: number): boolean {
  return Number.isInteger(status) && status >= 400 && status <= 599;
}

function numberIn(places: readonly JsonObject[]): number | undefined {
  for (const place of places) {
    for (const field of numberFields) {
      const status = errorStatus(place[field]);
      if (status !== undefined) return status;
    }
  }
  return undefined;
}

/** Every known name, in the order in which they count. */
function namesIn(places: readonly JsonObject[], error: unknown): KnownName[] {
  const names: KnownName[] = [];
  for (const place of places) {
    for (const field of nameFields) {
      const name = nameAt(place, field);
      const known = name === undefined ? undefined : lookUpName(name, field);
      if (known !== undefined) names.push(known);
    }
  }
  // `"error": "rate_limit_exceeded"`: one word is a name. A sentence is a message, and those are not guessed from.
  const word = text(error);
  const known = word !== undefined && /^\w+$/.test(word) ? lookUpName(word, "error") : undefined;
  return known === undefined ? names : [...names, known];
}

/** What names the kind of an event or a document, not that of a failure. */
const eventType = /^(?:error|[a-z_]+\.[a-z_.]+|[a-z][a-z+.-]*:.*)$/;

function nameAt(place: JsonObject, field: string): string | undefined {
  const name = text(place[field]);
  if (name === undefined || (field === "type" && eventType.test(name))) return undefined;
  // AWS: `com.amazonaws.bedrock#ThrottlingException`.
  return field === "__type" ? name.slice(name.lastIndexOf("#") + 1) : name;
}

/** Longer strings are sentences, not codes. */
const maxCodeLength = 128;

function codeIn(places: readonly JsonObject[]): string | undefined {
  for (const place of places) {
    const status = nameAt(place, "status");
    if (status !== undefined && lookUpName(status, "status") !== undefined) return status;
    const code = place["code"];
    const found =
      (typeof code === "number" ? String(code) : text(code)) ??
      nameAt(place, "error_type") ??
      nameAt(place, "type") ??
      nameAt(place, "__type");
    if (found !== undefined && found.length <= maxCodeLength) return found;
  }
  return undefined;
}

function codeOfText(error: unknown): string | undefined {
  const message = text(error);
  if (message === undefined || message.length > maxCodeLength) return undefined;
  const folded = foldName(message);
  return folded === "" ? undefined : folded;
}

const policyName = /moderation|guardrail|policy|content_?filter|safety/i;

function hasPolicyReason(place: JsonObject): boolean {
  const metadata = isObject(place["metadata"]) ? place["metadata"] : {};
  const names = [place["code"], place["type"], place["error_type"], metadata["error_type"]];
  if (names.some((name) => typeof name === "string" && policyName.test(name))) return true;
  const reasons = metadata["reasons"];
  return (Array.isArray(reasons) && reasons.length > 0) || text(metadata["flagged_input"]) !== undefined;
}
