/** The headers of a provider's answer. */

/**
 * Lower-case names. Multi-valued fields as arrays. Only names that are no member of every object are read of it; all of them
 * are its own keys.
 */
export type ResponseHeaders = Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Name, value, name, value, …, each name once: what `writeHead` takes at the least cost. A record whose names differ from
 * answer to answer is the dearest thing that could be made of them.
 */
export type HeaderPairs = (string | string[])[];

export function headerRecord(pairs: Readonly<HeaderPairs>): Record<string, string | string[]> {
  const record: Record<string, string | string[]> = {};
  for (let at = 0; at < pairs.length; at += 2) record[pairs[at] as string] = pairs[at + 1] as string | string[];
  return record;
}
