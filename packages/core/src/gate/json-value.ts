/** Reading parsed JSON of unknown shape. Own properties only, no coercion. */

export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The property if it is an object, else an empty one. */
export function objectAt(value: unknown, key: string): JsonObject {
  const found = isObject(value) ? value[key] : undefined;
  return isObject(found) ? found : {};
}

/** The property if it is an array, else an empty one. */
export function arrayAt(value: unknown, key: string): readonly unknown[] {
  const found = isObject(value) ? value[key] : undefined;
  return Array.isArray(found) ? found : [];
}

/** The property if it is a non-empty string. */
export function stringAt(value: unknown, key: string): string | undefined {
  const found = isObject(value) ? value[key] : undefined;
  return typeof found === "string" && found !== "" ? found : undefined;
}

/** The property if it is a finite number. */
export function numberAt(value: unknown, key: string): number | undefined {
  const found = isObject(value) ? value[key] : undefined;
  return typeof found === "number" && Number.isFinite(found) ? found : undefined;
}

/** Keys that say what a part is, not what it holds. */
const labels = new Set(["type", "id", "index", "format", "role", "status", "object"]);

/**
 * Whether any text or data stands in the value, at any depth: a non-empty string that is no label. Not recursive: JSON
 * may be nested deeper than the stack goes.
 */
export function hasContent(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return typeof value === "string" && value !== "";
  const open: unknown[] = [value];
  while (open.length > 0) {
    const part = open.pop();
    if (typeof part === "string") {
      if (part !== "") return true;
    } else if (Array.isArray(part)) {
      for (const element of part) open.push(element);
    } else if (isObject(part)) {
      for (const key of Object.keys(part)) if (!labels.has(key)) open.push(part[key]);
    }
  }
  return false;
}
