/** The head of an answer as undici's parser gives it → the fields that the gateway has a use for. */

import type { ResponseHeaders } from "../response-headers.js";
import { isOfUse } from "./response-headers.js";

/** @param raw name, value, name, value, …, each a view on the read in which it came */
export function readRawHeaders(raw: readonly Buffer[]): ResponseHeaders {
  // Of use are none of the names that every object has.
  const headers: Record<string, string | string[]> = {};
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const { name, ofUse } = nameOf(raw[at] as Buffer);
    if (!ofUse) continue;
    const value = (raw[at + 1] as Buffer).toString("latin1");
    const before = headers[name];
    if (before === undefined) headers[name] = value;
    else if (typeof before === "string") headers[name] = [before, value];
    else before.push(value);
  }
  return headers;
}

interface Name {
  /** As it is spelled on the wire. */
  readonly bytes: Uint8Array;
  readonly name: string;
  readonly ofUse: boolean;
}

/**
 * Providers send the same names with every answer, and to make a string of one, look it up and drop it costs several times
 * as much as to compare its bytes. One name in each place, and the later one stays.
 */
const places = 256;
/** Longer ones are not kept, since a provider may send any name. In bytes. */
const maxKept = 64;
const names: (Name | undefined)[] = Array.from({ length: places });

function nameOf(raw: Buffer): Name {
  const place = placeOf(raw);
  const known = names[place];
  if (known !== undefined && isSame(known.bytes, raw)) return known;
  const name = raw.toString("latin1").toLowerCase();
  const met = { bytes: new Uint8Array(raw), name, ofUse: isOfUse(name) };
  if (raw.length <= maxKept) names[place] = met;
  return met;
}

/** Of what is looked at anyway: how long it is, how it begins, what is in its middle and how it ends. */
function placeOf(raw: Buffer): number {
  const { length } = raw;
  const first = raw[0] ?? 0;
  const middle = raw[length >> 1] ?? 0;
  const last = raw[length - 1] ?? 0;
  return (length * 31 + first * 7 + middle * 3 + last) % places;
}

function isSame(known: Uint8Array, raw: Buffer): boolean {
  if (known.length !== raw.length) return false;
  for (let at = 0; at < known.length; at += 1) if (known[at] !== raw[at]) return false;
  return true;
}
