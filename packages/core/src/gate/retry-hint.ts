/**
 * How long a provider asks to wait, out of its error body: a structured field, else the wording OpenAI uses
 * ("Please try again in 1.5s."). The `Retry-After` header is read elsewhere.
 */

import { isObject, type JsonObject } from "./json-value.js";
import { placesOf, text } from "./status.js";

const secondFields = ["retry_after", "retry_after_seconds", "retryAfter", "retryDelay", "resets_in_seconds"] as const;
const millisecondFields = ["retry_after_ms", "retryAfterMs"] as const;

/** A longer wait than a timer can hold is a mistake or a date. */
const maxHintMs = 2_147_483_647;

/**
 * In ms, above 0; undefined where the provider names no time.
 *
 * @param error the error object, or the string that stands in its place
 * @param message the provider's wording
 */
export function retryHintMs(error: unknown, carrier: unknown, message: string | undefined): number | undefined {
  for (const place of placesOf(error, carrier)) {
    const hint = structuredHint(place);
    if (hint !== undefined) return hint;
  }
  return message === undefined ? undefined : wordedHint(message);
}

function structuredHint(place: JsonObject): number | undefined {
  const details: unknown = place["details"];
  const holders: unknown[] = [place, place["metadata"], ...(Array.isArray(details) ? details : [details])];
  for (const holder of holders) {
    if (!isObject(holder)) continue;
    for (const field of millisecondFields) {
      const hint = bounded(numeric(holder[field]), 1);
      if (hint !== undefined) return hint;
    }
    for (const field of secondFields) {
      const hint = seconds(holder[field]);
      if (hint !== undefined) return hint;
    }
  }
  return undefined;
}

/** `12`, `"12"`, `"12s"`, `"0.5s"`, `"1m30s"`, or a protobuf Duration `{seconds, nanos}`. */
function seconds(value: unknown): number | undefined {
  if (isObject(value)) {
    return bounded((numeric(value["seconds"]) ?? 0) + (numeric(value["nanos"]) ?? 0) / 1e9, 1000);
  }
  const number = numeric(value);
  if (number !== undefined) return bounded(number, 1000);
  const written = text(value);
  return written !== undefined && wholeDuration.test(written) ? duration(written) : undefined;
}

function numeric(value: unknown): number | undefined {
  if (typeof value === "number") return value;
  const written = text(value);
  return written !== undefined && /^\d{1,12}(?:\.\d{1,12})?$/.test(written) ? Number(written) : undefined;
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** One number and unit. Longer units first: `m` must not take the start of `ms`. */
const part = String.raw`\d{1,9}(?:\.\d{1,9})?\s{0,3}(?:ms|milliseconds?|secs?|seconds?|s|mins?|minutes?|m|hrs?|hours?|h|days?|d)(?![a-z])`;
const partsText = String.raw`${part}(?:(?:\s{0,3},?\s{0,3}(?:and\s{1,3})?)${part}){0,4}`;
// Parts may touch, as in `1m30s`: a unit may be followed by a digit, not by a letter.
const wholeDuration = new RegExp(`^${partsText}$`, "i");
const wording = new RegExp(String.raw`\b(?:try\s+again|retry)\s+(?:in|after)\s+(${partsText})`, "i");
const eachPart = /(\d{1,9}(?:\.\d{1,9})?)\s{0,3}([a-z]{1,12})/gi;

function wordedHint(message: string): number | undefined {
  const found = wording.exec(message)?.[1];
  return found === undefined ? undefined : duration(found);
}

function duration(written: string): number | undefined {
  let total = 0;
  for (const [, number, unit] of written.matchAll(eachPart)) {
    total += Number(number) * (unitLength(unit ?? "") ?? 0);
  }
  return bounded(total, 1);
}

function unitLength(unit: string): number | undefined {
  const lower = unit.toLowerCase();
  if (lower === "ms" || lower.startsWith("milli")) return unitMs["ms"];
  return unitMs[lower[0] ?? ""];
}

function bounded(value: number | undefined, unit: number): number | undefined {
  if (value === undefined) return undefined;
  // Six decimals are kept before rounding up, so that 1.1 s is 1100 ms and not 1101.
  const ms = Math.ceil(Math.round(value * unit * 1e6) / 1e6);
  return ms > 0 && ms <= maxHintMs ? ms : undefined;
}
