/**
 * Changes top-level members of a JSON object in its own text. What is not changed keeps its bytes: big integers,
 * white space, duplicate keys in depth, the order of keys.
 */

/** Where a member stands in the text. */
interface Member {
  readonly key: string;
  /** The opening quote of the key. */
  readonly start: number;
  readonly valueStart: number;
  readonly end: number;
}

/** New values by key; `undefined` removes the member. */
export type JsonEdits = ReadonlyMap<string, unknown>;

/**
 * @param text a JSON object, already known to parse
 * @returns the same text with the edits; added members stand at the end
 */
export function editJsonObject(text: string, edits: JsonEdits): string {
  const open = text.indexOf("{");
  const members = topLevelMembers(text, open);
  const found = new Set<string>();
  const parts: string[] = [];
  for (const [index, member] of members.entries()) {
    const edited = edits.has(member.key);
    const value = edits.get(member.key);
    found.add(member.key);
    if (edited && value === undefined) continue;
    const separator = text.slice(members[index - 1]?.end ?? open + 1, member.start);
    // The first member that stays brings no comma, whichever it is.
    const before = parts.length === 0 ? separator.replace(",", "") : separator;
    parts.push(
      before +
        (edited
          ? text.slice(member.start, member.valueStart) + JSON.stringify(value)
          : text.slice(member.start, member.end)),
    );
  }
  for (const [key, value] of edits) {
    if (value === undefined || found.has(key)) continue;
    parts.push(`${parts.length === 0 ? "" : ","}${JSON.stringify(key)}:${JSON.stringify(value)}`);
  }
  return text.slice(0, open + 1) + parts.join("") + text.slice(members[members.length - 1]?.end ?? open + 1);
}

function topLevelMembers(text: string, open: number): Member[] {
  const members: Member[] = [];
  let at = skipSpace(text, open + 1);
  while (text[at] === '"') {
    const start = at;
    const keyEnd = stringEnd(text, start);
    const valueStart = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const end = valueEnd(text, valueStart);
    members.push({ key: JSON.parse(text.slice(start, keyEnd)) as string, start, valueStart, end });
    at = skipSpace(text, end);
    if (text[at] === ",") at = skipSpace(text, at + 1);
  }
  return members;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (text[at] === " " || text[at] === "\n" || text[at] === "\r" || text[at] === "\t") at += 1;
  return at;
}

/** Just after the closing quote. */
function stringEnd(text: string, open: number): number {
  let at = text.indexOf('"', open + 1);
  while (isEscaped(text, at)) at = text.indexOf('"', at + 1);
  return at + 1;
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text[at - 1 - backslashes] === "\\") backslashes += 1;
  return backslashes % 2 === 1;
}

function valueEnd(text: string, start: number): number {
  const first = text[start];
  if (first === '"') return stringEnd(text, start);
  if (first !== "{" && first !== "[") {
    let at = start;
    while (at < text.length && !",}] \n\r\t".includes(text[at] as string)) at += 1;
    return at;
  }
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    const character = text[at];
    if (character === '"') at = stringEnd(text, at) - 1;
    else if (character === "{" || character === "[") depth += 1;
    else if ((character === "}" || character === "]") && --depth === 0) return at + 1;
  }
  return text.length;
}
