/** JSON values of the configuration that are written into request bodies. */

import type { Path, Problems } from "./problems.js";

/** A frozen copy. What JSON cannot carry is a problem, since it would silently change on the wire. */
export function frozenJson(value: unknown, path: Path, problems: Problems, parents: readonly unknown[] = []): unknown {
  if (value === null || typeof value === "string" || typeof value === "boolean") return value;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (parents.includes(value)) {
    problems.add(path, "must not refer to a value that holds it");
    return null;
  }
  const inner = [...parents, value];
  if (Array.isArray(value)) {
    return Object.freeze(value.map((item, index) => frozenJson(item, [...path, index], problems, inner)));
  }
  if (isPlainObject(value)) {
    const pairs = Object.entries(value).map(([key, item]) => [key, frozenJson(item, [...path, key], problems, inner)]);
    return Object.freeze(Object.fromEntries(pairs));
  }
  problems.add(path, "must be a JSON value: null, true, false, a finite number, a string, an array or an object");
  return null;
}

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
