/** Problems of a configuration: collected, so that one run shows all of them, then thrown as one `ConfigError`. */

import { ConfigError } from "../errors.js";

export type Path = readonly PropertyKey[];

export interface Problem {
  readonly path: Path;
  /** What would be right, as a sentence. Never holds a key, a header value or a URL. */
  readonly remedy: string;
}

const shownProblems = 10;

export class Problems {
  readonly #list: Problem[] = [];
  readonly #seen = new Set<string>();

  /** A second problem at the same path is dropped: it mostly follows from the first. */
  add(path: Path, remedy: string): void {
    const key = formatPath(path);
    if (this.#seen.has(key)) return;
    this.#seen.add(key);
    this.#list.push({ path, remedy });
  }

  /** Throws a `ConfigError` at the first problem that lists the others too, or does nothing. */
  throwIfAny(): void {
    const [first, ...others] = this.#list;
    if (first === undefined) return;
    const lines = [first.remedy];
    for (const other of others.slice(0, shownProblems - 1)) lines.push(`${formatPath(other.path)}: ${other.remedy}`);
    if (others.length >= shownProblems) lines.push(`… and ${others.length - shownProblems + 1} more problems`);
    throw new ConfigError(formatPath(first.path), lines.join("\n"));
  }
}

/** `models.fast-chat.targets[1].target`; a name with a dot, a bracket or white space is quoted: `models["gpt-5.1"]`. */
export function formatPath(path: Path): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else if (/^[^\s.[\]"]+$/.test(String(part))) text += text === "" ? String(part) : `.${String(part)}`;
    else text += `[${quote(String(part))}]`;
  }
  return text;
}

/** For names that stand in a message: quoted, at most 60 characters. */
export function quote(text: string): string {
  return JSON.stringify(text.length > 60 ? `${text.slice(0, 60)}…` : text);
}

/** `"a", "b" or "c"`. */
export function listNames(names: readonly string[], word: "and" | "or" = "or"): string {
  const quoted = names.slice(0, 20).map(quote);
  const hidden = names.length - quoted.length;
  if (hidden > 0) return `${quoted.join(", ")} ${word} ${hidden} more`;
  const last = quoted.pop();
  if (last === undefined) return "none";
  return quoted.length === 0 ? last : `${quoted.join(", ")} ${word} ${last}`;
}

/** The known name that the writer most likely meant, if one is near. */
export function nearest(name: string, known: readonly string[]): string | undefined {
  const plain = normalize(name);
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(plain.length / 3)) + 1;
  for (const candidate of known) {
    const distance = editDistance(plain, normalize(candidate));
    // A distance as long as the word itself would call any short word near.
    if (distance < bestDistance && distance < plain.length) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

/** ` Did you mean "routing"?`, or nothing. */
export function suggestion(name: string, known: readonly string[]): string {
  const near = nearest(name, known);
  return near === undefined ? "" : ` Did you mean ${quote(near)}?`;
}

/** So that `base_url`, `baseURL` and `base-url` are all near `baseUrl`. */
function normalize(name: string): string {
  return name.slice(0, 60).toLowerCase().replaceAll(/[_-]/g, "");
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replace = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replace, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
