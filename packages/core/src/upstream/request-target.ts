/** The client's request target, taken apart without a URL parser: those resolve `//host` and dot segments. */

export interface RequestTarget {
  /** Begins with exactly one slash. Still encoded. */
  readonly path: string;
  /** Without the question mark; empty if there is none. */
  readonly query: string;
}

/** One encoded slash may stand inside the model of these paths, nowhere else. */
const modelInPath = /^(?:\/[^/]+)*?\/(?:models?\/)([^/]+?)(?::[A-Za-z]+|\/[a-z-]+)$/;

/**
 * Undefined: no path of an API, and nothing to be routed: another host's, a control character, a backslash, an empty or
 * dot segment, an encoded slash or NUL, a broken escape. Of an absolute-form target the path alone counts. Never throws.
 */
export function parseRequestTarget(target: string): RequestTarget | undefined {
  const relative = /^https?:\/\/[^/?#\\]*(?=\/)/i.exec(target);
  const text = relative === null ? target : target.slice(relative[0].length);
  const mark = text.indexOf("?");
  const path = mark === -1 ? text : text.slice(0, mark);
  const query = mark === -1 ? "" : text.slice(mark + 1);
  if (!/^\/[\x21\x22\x24-\x5b\x5d-\x7e]*$/.test(path) || /[^\x21-\x7e]/.test(query)) return undefined;
  if (path.includes("//") || !isDecodable(path)) return undefined;
  if (/%(?:00|5c|25(?:2e|2f|5c|00))/i.test(path) || !encodedSlashesAllowed(path)) return undefined;
  for (const segment of path.split("/")) {
    if (/^\.{1,2}$/.test(segment.replace(/%2e/gi, "."))) return undefined;
  }
  return { path, query };
}

function isDecodable(path: string): boolean {
  try {
    decodeURIComponent(path);
    return true;
  } catch {
    return false;
  }
}

function encodedSlashesAllowed(path: string): boolean {
  const all = path.match(/%2f/gi)?.length ?? 0;
  if (all === 0) return true;
  const model = modelInPath.exec(path)?.[1] ?? "";
  if (all > 1 || !/%2f/i.test(model)) return false;
  // `..%2fadmin` would climb in a server that decodes before it splits.
  return !model.split(/%2f/i).some((part) => /^\.{0,2}$/.test(part.replace(/%2e/gi, ".")));
}
