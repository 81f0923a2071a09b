/**
 * Token usage as providers report it, in whichever frame and under whichever names. Told by the names alone, so that no
 * protocol has to know of it.
 */

import { arrayAt, isObject, numberAt, objectAt, type JsonObject } from "./json-value.js";

/** Tokens as the provider reported them; a field is absent where it did not. */
export interface TokenUsage {
  /** All of the input, with what was read from or written to a prompt cache. */
  readonly inputTokens?: number | undefined;
  /** All of the output, with reasoning. */
  readonly outputTokens?: number | undefined;
  /** Part of the input that was read from a prompt cache. */
  readonly cachedTokens?: number | undefined;
  /** Part of the input that was written to a prompt cache. */
  readonly cacheWriteTokens?: number | undefined;
  /** Part of the output that was reasoning. */
  readonly reasoningTokens?: number | undefined;
}

/** @returns what the frame's value says of usage, or undefined */
export function readUsage(value: unknown): TokenUsage | undefined {
  if (!isObject(value)) return undefined;
  // Ollama keeps its counts beside the message.
  if ("eval_count" in value || "prompt_eval_count" in value) {
    return reported({ inputTokens: numberAt(value, "prompt_eval_count"), outputTokens: numberAt(value, "eval_count") });
  }
  // The value, a whole response or message in it, Groq's own member, Moonshot's choice: one after the other, since nearly
  // every frame has none of them.
  const holder =
    holds(value) ??
    holds(value["response"]) ??
    holds(value["message"]) ??
    holds(value["interaction"]) ??
    holds(value["x_groq"]) ??
    holds(arrayAt(value, "choices")[0]);
  if (holder === undefined) return undefined;
  const { usage } = holder;
  return isObject(usage) ? named(usage) : google(objectAt(holder, "usageMetadata"));
}

/** The value, if a usage object stands in it. */
function holds(value: unknown): JsonObject | undefined {
  return isObject(value) && (isObject(value["usage"]) || isObject(value["usageMetadata"])) ? value : undefined;
}

function named(usage: JsonObject): TokenUsage | undefined {
  if ("prompt_tokens" in usage || "completion_tokens" in usage) return chat(usage);
  if ("inputTokens" in usage || "outputTokens" in usage) return converse(usage);
  if ("total_input_tokens" in usage || "total_output_tokens" in usage) return interactions(usage);
  return messages(usage);
}

function chat(usage: JsonObject): TokenUsage | undefined {
  return reported({
    inputTokens: numberAt(usage, "prompt_tokens"),
    outputTokens: numberAt(usage, "completion_tokens"),
    // DeepSeek has a name of its own.
    cachedTokens:
      numberAt(objectAt(usage, "prompt_tokens_details"), "cached_tokens") ?? numberAt(usage, "prompt_cache_hit_tokens"),
    reasoningTokens: numberAt(objectAt(usage, "completion_tokens_details"), "reasoning_tokens"),
  });
}

/**
 * The Responses API counts cached tokens in `input_tokens`; Anthropic leaves them out.
 * https://platform.claude.com/docs/en/build-with-claude/prompt-caching
 */
function messages(usage: JsonObject): TokenUsage | undefined {
  const cacheRead = numberAt(usage, "cache_read_input_tokens");
  const cacheWriteTokens = numberAt(usage, "cache_creation_input_tokens");
  return reported({
    inputTokens: sum(numberAt(usage, "input_tokens"), cacheRead, cacheWriteTokens),
    outputTokens: numberAt(usage, "output_tokens"),
    cachedTokens: cacheRead ?? numberAt(objectAt(usage, "input_tokens_details"), "cached_tokens"),
    cacheWriteTokens,
    reasoningTokens: numberAt(objectAt(usage, "output_tokens_details"), "reasoning_tokens"),
  });
}

/** As Anthropic counts. https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_TokenUsage.html */
function converse(usage: JsonObject): TokenUsage | undefined {
  const cachedTokens = numberAt(usage, "cacheReadInputTokens");
  const cacheWriteTokens = numberAt(usage, "cacheWriteInputTokens");
  return reported({
    inputTokens: sum(numberAt(usage, "inputTokens"), cachedTokens, cacheWriteTokens),
    outputTokens: numberAt(usage, "outputTokens"),
    cachedTokens,
    cacheWriteTokens,
  });
}

function google(usage: JsonObject): TokenUsage | undefined {
  const reasoningTokens = numberAt(usage, "thoughtsTokenCount");
  return reported({
    inputTokens: sum(numberAt(usage, "promptTokenCount"), numberAt(usage, "toolUsePromptTokenCount")),
    outputTokens: sum(numberAt(usage, "candidatesTokenCount"), reasoningTokens),
    cachedTokens: numberAt(usage, "cachedContentTokenCount"),
    reasoningTokens,
  });
}

function interactions(usage: JsonObject): TokenUsage | undefined {
  const reasoningTokens = numberAt(usage, "total_thought_tokens");
  return reported({
    inputTokens: sum(numberAt(usage, "total_input_tokens"), numberAt(usage, "total_tool_use_tokens")),
    outputTokens: sum(numberAt(usage, "total_output_tokens"), reasoningTokens),
    cachedTokens: numberAt(usage, "total_cached_tokens"),
    reasoningTokens,
  });
}

/** Undefined where no part is reported. */
function sum(...parts: readonly (number | undefined)[]): number | undefined {
  const known = parts.filter((part) => part !== undefined);
  return known.length === 0 ? undefined : known.reduce((total, part) => total + part, 0);
}

type Counts = { -readonly [Name in keyof TokenUsage]: TokenUsage[Name] };

/** Fields with a plausible count only; undefined if there is none. */
function reported(usage: TokenUsage): TokenUsage | undefined {
  const { inputTokens, outputTokens, cachedTokens, cacheWriteTokens, reasoningTokens } = usage;
  const counts: Counts = {};
  if (isCount(inputTokens)) counts.inputTokens = inputTokens;
  if (isCount(outputTokens)) counts.outputTokens = outputTokens;
  if (isCount(cachedTokens)) counts.cachedTokens = cachedTokens;
  if (isCount(cacheWriteTokens)) counts.cacheWriteTokens = cacheWriteTokens;
  if (isCount(reasoningTokens)) counts.reasoningTokens = reasoningTokens;
  for (const _ in counts) return counts;
  return undefined;
}

function isCount(count: number | undefined): count is number {
  return Number.isSafeInteger(count) && (count as number) >= 0;
}

/** Usage is reported as running totals, in parts: the highest count is the last one. */
export function mergeUsage(before: TokenUsage | undefined, next: TokenUsage | undefined): TokenUsage | undefined {
  if (before === undefined || next === undefined) return next ?? before;
  const merged: Record<string, number> = { ...before };
  for (const [name, count] of Object.entries(next) as [string, number][])
    merged[name] = Math.max(merged[name] ?? 0, count);
  return merged;
}
