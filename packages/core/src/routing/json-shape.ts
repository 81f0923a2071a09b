/**
 * What parsing a body would cost, found by looking at its bytes. `JSON.parse` makes an object of two bytes (`[]`): a body
 * of nothing but brackets holds the process for seconds and takes twenty times its size.
 */

/** Deeper than any request of the APIs; a JSON schema reaches about 50. */
const maxDepth = 500;
/** Objects and arrays. A conversation of ten thousand messages has about 50 000. */
const maxContainers = 250_000;
/** A smaller body cannot cost much, whatever it holds. */
const freeBytes = 65_536;

const quote = 0x22;
const backslash = 0x5c;

/** @returns false where parsing would cost too much. Says nothing of whether the bytes are JSON. */
export function isAffordableJson(bytes: Uint8Array): boolean {
  if (bytes.length <= freeBytes) return true;
  let depth = 0;
  let containers = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    switch (bytes[at]) {
      case quote:
        at = stringEnd(bytes, at + 1);
        break;
      case 0x5b: // [
      case 0x7b: // {
        depth += 1;
        containers += 1;
        if (depth > maxDepth || containers > maxContainers) return false;
        break;
      case 0x5d: // ]
      case 0x7d: // }
        depth -= 1;
    }
  }
  return true;
}

/** The closing quote of the string that begins at `from`; the length of the bytes if there is none. */
function stringEnd(bytes: Uint8Array, from: number): number {
  let at = bytes.indexOf(quote, from);
  while (at !== -1 && isEscaped(bytes, at, from)) at = bytes.indexOf(quote, at + 1);
  return at === -1 ? bytes.length : at;
}

/** @param from where the string begins: what is before it does not escape */
function isEscaped(bytes: Uint8Array, at: number, from: number): boolean {
  let backslashes = 0;
  while (at - 1 - backslashes >= from && bytes[at - 1 - backslashes] === backslash) backslashes += 1;
  return backslashes % 2 === 1;
}
