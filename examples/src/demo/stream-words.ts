/** A provider's events in words, for people. */

type Json = Readonly<Record<string, unknown>>;

/** One event: generated text, or the name of what it is. */
export type Word = { readonly text: string } | { readonly name: string };

function object(value: unknown): Json | undefined {
  return typeof value === "object" && value !== null ? (value as Json) : undefined;
}

/** What one SSE event says. */
export function wordOf(chunk: string): Word {
  const data = /^data: (.*)$/m.exec(chunk)?.[1] ?? "";
  if (data === "[DONE]") return { name: "[DONE]" };
  if (data === "") return { name: chunk.startsWith(":") ? "comment" : "something else" };
  return wordOfValue(JSON.parse(data) as Json);
}

function wordOfValue(value: Json): Word {
  const type = typeof value["type"] === "string" ? value["type"] : undefined;
  // Nested, in the response object, or flat, as the Responses API has all three.
  const flat = type === "error" ? value : undefined;
  const failure = object(value["error"]) ?? object(object(value["response"])?.["error"]) ?? flat;
  if (failure !== undefined) {
    return {
      name: `${type ?? "error"} (${String(failure["code"] ?? failure["type"])}: ${String(failure["message"])})`,
    };
  }
  const text = object(value["delta"])?.["text"] ?? value["delta"];
  if (typeof text === "string") return { text };
  return type === undefined ? chatWord(value) : { name: type };
}

function chatWord(value: Json): Word {
  const choice = object((value["choices"] as unknown[] | undefined)?.[0]);
  const delta = object(choice?.["delta"]);
  if (typeof delta?.["content"] === "string" && delta["content"] !== "") return { text: delta["content"] };
  if (typeof choice?.["finish_reason"] === "string") return { name: `finish_reason ${choice["finish_reason"]}` };
  return { name: delta?.["role"] === undefined ? "usage" : "role without content" };
}

/** Many events on one line: text is joined, equal names in a row are counted. */
export function sentence(words: readonly Word[]): string {
  const parts: { name: string; count: number; text: boolean }[] = [];
  for (const word of words) {
    const last = parts.at(-1);
    if ("text" in word) {
      if (last?.text === true) last.name += word.text;
      else parts.push({ name: word.text, count: 1, text: true });
    } else if (last?.name === word.name) last.count += 1;
    else parts.push({ name: word.name, count: 1, text: false });
  }
  return parts
    .map(({ name, count, text }) => (text ? `text "${name}"` : count > 1 ? `${name} x${count}` : name))
    .join(", ");
}
