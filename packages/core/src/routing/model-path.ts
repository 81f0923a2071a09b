/** Paths with the model inside them, taken apart by splitting alone: no patterns on untrusted text. */

/** What stands around the model, and the model. */
export interface ModelPath {
  /** Without the version prefix, with `{model}` for the model: `/models/{model}:generateContent`. */
  readonly template: string;
  /** Decoded once. */
  readonly model: string;
}

/**
 * `/models/{model}:action` (Gemini) and `/model/{model}/operation` (Bedrock). The model is one segment, and may hold one
 * encoded slash: `provider/model`, or the one of an ARN. Undefined for every other path, for a broken escape, and where
 * the decoded model could be another path to a server that decodes before it splits.
 */
export function parseModelPath(path: string): ModelPath | undefined {
  const [before, collection, segment, operation, ...rest] = path.split("/");
  if (before !== "" || rest.length > 0 || segment === undefined) return undefined;
  const text = decodeOnce(segment);
  if (text === undefined) return undefined;
  if (collection === "model" && operation !== undefined) return found(text, `/model/{model}/${operation}`);
  if (collection !== "models" || operation !== undefined) return undefined;
  const colon = text.lastIndexOf(":");
  return colon === -1 ? undefined : found(text.slice(0, colon), `/models/{model}${text.slice(colon)}`);
}

function found(model: string, template: string): ModelPath | undefined {
  const parts = model.split("/");
  if (parts.length > 2 || parts.some((part) => part === "" || part === "." || part === "..")) return undefined;
  return { template, model };
}

function decodeOnce(segment: string): string | undefined {
  let text: string;
  try {
    text = decodeURIComponent(segment);
  } catch {
    return undefined;
  }
  for (const character of text) {
    if (character < " " || character === "\x7f" || character === "\\") return undefined;
  }
  return text;
}
