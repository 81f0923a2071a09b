/**
 * Streams as the vendors document them, as lists of strings: one string is one event, ready for the wire. Every
 * function makes a new list, so a test may change it.
 */

export interface StreamOptions {
  /** What the stream calls the model. */
  readonly model?: string;
  /** The generated text. It is cut into several deltas. */
  readonly text?: string;
  /** The response's id. */
  readonly id?: string;
}

export interface StreamErrorOptions extends StreamOptions {
  /** The provider's error type. */
  readonly type?: string;
  /** The provider's error code. */
  readonly code?: string | null;
  readonly message?: string;
}

export const defaultText: string = "The first chunk decides whether the rest is worth sending.";

/** An SSE event: `event:` line only with a name. Data that is no string is written as JSON. */
export function sseEvent(data: unknown, name?: string): string {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  return `${name === undefined ? "" : `event: ${name}\n`}data: ${text}\n\n`;
}

/** An SSE comment, as proxies send it to keep a connection open. */
export function sseComment(text: string): string {
  return `: ${text}\n\n`;
}

/** Cuts a text as providers do: a word, with the space before it, a delta. Joined, the parts are the text again. */
export function deltasOf(text: string): string[] {
  return text.match(/\s*\S+|\s+$/g) ?? [];
}
