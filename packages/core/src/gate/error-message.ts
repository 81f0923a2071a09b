/** The wording of a provider's error, made fit to be shown to a client. */

import { isObject, type JsonObject } from "./json-value.js";
import { placesOf, text } from "./status.js";

/** In characters. Longer messages are cut: some providers echo the whole prompt. */
const maxMessageLength = 4000;
/** Cut before redaction, so that its cost is bounded too. */
const maxReadLength = 8000;

/** `message` before the others: where several stand, it is the sentence and `title` the heading. */
const messageFields = ["message", "Message", "detail", "title", "msg"] as const;

/**
 * The provider's wording, with what looks like an API key taken out; undefined where there is none.
 *
 * @param error the error object, or the string that stands in its place
 */
export function messageOf(error: unknown, carrier?: unknown): string | undefined {
  const places = placesOf(error, carrier);
  const found = firstOf(places, sentenceIn) ?? text(error) ?? firstOf(places, (place) => text(place["error"]));
  return found === undefined ? undefined : presentable(found);
}

/** Text from a provider, bounded and without what looks like an API key. */
export function presentable(message: string, limit: number = maxMessageLength): string | undefined {
  const cut = message.length > maxReadLength;
  // The start of a key at the cut would be too short to be recognised.
  const read = cut ? message.slice(0, maxReadLength).replace(/\S{1,200}$/, "") : message;
  const redacted = keyPatterns.reduce((current, [pattern, replacement]) => current.replace(pattern, replacement), read);
  const bounded = redacted.length > limit ? `${redacted.slice(0, limit - 1)}…` : redacted;
  return text(bounded);
}

const keyPatterns: readonly (readonly [RegExp, string])[] = [
  [/\bBearer\s+(?=[^\s]{0,200}\d)[\w.~+/=*-]{8,}/gi, "Bearer [redacted]"],
  [/\b(?:sk|gsk|csk|xai|pplx|nvapi)-[\w*-]{6,}/g, "[redacted]"],
  [/\b(?:hf|fw|gsk|r8|tgp_v1)_[A-Za-z0-9*_-]{16,}/g, "[redacted]"],
  [/\bAIza[\w*-]{10,}/g, "[redacted]"],
  [/\b(?:AKIA|ASIA)[A-Z0-9]{12,}/g, "[redacted]"],
  // OpenAI and others echo a key of any form, partly starred.
  [/(\bAPI key provided:\s{0,4})[^\s,]*[^\s,.]/gi, "$1[redacted]"],
  [/([?&](?:key|api[-_]?key)=)[^&\s"']+/gi, "$1[redacted]"],
];

function sentenceIn(place: JsonObject): string | undefined {
  for (const field of messageFields) {
    const value: unknown = place[field];
    // Validation reports are lists, of sentences or of objects with one.
    const first: unknown = Array.isArray(value) ? value[0] : value;
    const sentence = text(isObject(first) && Array.isArray(value) ? (first["msg"] ?? first["message"]) : first);
    if (sentence !== undefined) return sentence;
  }
  return undefined;
}

function firstOf<T>(places: readonly JsonObject[], read: (place: JsonObject) => T | undefined): T | undefined {
  for (const place of places) {
    const found = read(place);
    if (found !== undefined) return found;
  }
  return undefined;
}
