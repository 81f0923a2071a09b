/** Metadata of a request: what the client says in a header, and what the host's auth says, which wins. */

import type { Failure } from "../errors.js";
import { isObject } from "../gate/json-value.js";
import type { GatewayRequest, Identity } from "../request.js";
import { badRequest } from "../request-failures.js";

export type Metadata = ReadonlyMap<string, string>;

/** Longest value, in characters. */
const maxValueLength = 128;
/** Most keys of a header: each may end in a log or a metric. */
const maxKeys = 64;

const none: Metadata = new Map();

/** @returns the merged values, or a 400 that names the header and what would be right */
export function readMetadata(
  headers: GatewayRequest["headers"],
  prefix: string,
  identity: Identity | undefined,
): Metadata | Failure {
  const name = `${prefix}metadata`;
  const header = Object.hasOwn(headers, name) ? headers[name] : undefined;
  if (header === undefined && identity?.metadata === undefined) return none;
  const own = Object.entries(identity?.metadata ?? {}).filter(([, value]) => typeof value === "string");
  if (header === undefined) return own.length === 0 ? none : new Map(own);
  const values = typeof header === "string" ? parse(header) : undefined;
  if (values !== undefined) return new Map([...values, ...own]);
  return badRequest(
    `The header \`${name}\` must be a JSON object of at most ${maxKeys} strings, each of at most ${maxValueLength} characters.`,
    name,
  );
}

function parse(text: string): [string, string][] | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(value)) return undefined;
  const entries = Object.entries(value);
  return entries.length <= maxKeys && entries.every(isEntry) ? entries : undefined;
}

function isEntry(entry: [string, unknown]): entry is [string, string] {
  return typeof entry[1] === "string" && entry[1].length <= maxValueLength;
}

/** Whether the request has all of these values. */
export function hasMetadata(metadata: Metadata, wanted: readonly (readonly [key: string, value: string])[]): boolean {
  return wanted.every(([key, value]) => metadata.get(key) === value);
}
