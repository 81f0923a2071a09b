/** The two small languages of names: `provider/model`, and a name that may end in `*`. */

export interface TargetRef {
  readonly provider: string;
  /** May hold further slashes. `*` keeps the requested name. */
  readonly model: string;
}

/** Splits `provider/model` at the first slash. Undefined where a side is empty or there is no slash. */
export function parseTargetRef(text: string): TargetRef | undefined {
  const slash = text.indexOf("/");
  if (slash < 1 || slash === text.length - 1) return undefined;
  return { provider: text.slice(0, slash), model: text.slice(slash + 1) };
}

/** Whether the name is a pattern: it ends in `*`. */
export function isPattern(name: string): boolean {
  return name.endsWith("*");
}

/** What is wrong with a name that may end in one `*`; undefined if nothing is. */
export function nameProblem(name: string): string | undefined {
  if (name === "") return "must not be empty";
  if (name !== name.trim() || /\p{Cc}/u.test(name)) {
    return "must not begin or end with white space or contain control characters";
  }
  const star = name.indexOf("*");
  if (star !== -1 && star !== name.length - 1) return "may have one `*` only, as its last character";
  return undefined;
}

/** Whether `name` is the pattern itself or, for a pattern that ends in `*`, begins with what stands before the `*`. */
export function matchesName(pattern: string, name: string): boolean {
  if (pattern === "*") return true;
  return isPattern(pattern) ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}
