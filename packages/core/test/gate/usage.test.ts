import { describe, expect, it } from "vitest";
import { mergeUsage, readUsage } from "../../src/gate/usage.js";

describe("token usage in a frame", () => {
  it.each([
    [
      "Anthropic message_start",
      {
        type: "message_start",
        message: {
          usage: { input_tokens: 10, cache_read_input_tokens: 90, cache_creation_input_tokens: 5, output_tokens: 1 },
        },
      },
      { inputTokens: 105, outputTokens: 1, cachedTokens: 90, cacheWriteTokens: 5 },
    ],
    ["Anthropic message_delta", { type: "message_delta", usage: { output_tokens: 42 } }, { outputTokens: 42 }],
    [
      "Chat Completions",
      {
        choices: [],
        usage: {
          prompt_tokens: 20,
          completion_tokens: 7,
          prompt_tokens_details: { cached_tokens: 16 },
          completion_tokens_details: { reasoning_tokens: 3 },
        },
      },
      { inputTokens: 20, outputTokens: 7, cachedTokens: 16, reasoningTokens: 3 },
    ],
    [
      "DeepSeek",
      { usage: { prompt_tokens: 20, completion_tokens: 7, prompt_cache_hit_tokens: 4 } },
      { inputTokens: 20, outputTokens: 7, cachedTokens: 4 },
    ],
    [
      "Groq",
      { choices: [], x_groq: { usage: { prompt_tokens: 2, completion_tokens: 3 } } },
      { inputTokens: 2, outputTokens: 3 },
    ],
    [
      "Moonshot",
      { choices: [{ usage: { prompt_tokens: 2, completion_tokens: 3 } }] },
      { inputTokens: 2, outputTokens: 3 },
    ],
    [
      "Responses",
      {
        type: "response.completed",
        response: {
          usage: {
            input_tokens: 30,
            input_tokens_details: { cached_tokens: 8 },
            output_tokens: 9,
            output_tokens_details: { reasoning_tokens: 4 },
          },
        },
      },
      { inputTokens: 30, outputTokens: 9, cachedTokens: 8, reasoningTokens: 4 },
    ],
    [
      "Gemini",
      {
        usageMetadata: {
          promptTokenCount: 5,
          toolUsePromptTokenCount: 1,
          candidatesTokenCount: 6,
          thoughtsTokenCount: 2,
          cachedContentTokenCount: 3,
        },
      },
      { inputTokens: 6, outputTokens: 8, cachedTokens: 3, reasoningTokens: 2 },
    ],
    [
      "Interactions",
      {
        event_type: "interaction.completed",
        interaction: { usage: { total_input_tokens: 5, total_output_tokens: 6, total_thought_tokens: 2 } },
      },
      { inputTokens: 5, outputTokens: 8, reasoningTokens: 2 },
    ],
    [
      "Converse",
      { usage: { inputTokens: 4, outputTokens: 6, cacheReadInputTokens: 2, cacheWriteInputTokens: 1 } },
      { inputTokens: 7, outputTokens: 6, cachedTokens: 2, cacheWriteTokens: 1 },
    ],
    ["Ollama", { done: true, prompt_eval_count: 11, eval_count: 12 }, { inputTokens: 11, outputTokens: 12 }],
  ])("is read from %s", (_name, value, usage) => {
    expect(readUsage(value)).toEqual(usage);
  });

  it.each([
    [null],
    ["text"],
    [[]],
    [{}],
    [{ usage: null }],
    [{ usage: {} }],
    [{ usage: { prompt_tokens: "9", completion_tokens: -1 } }],
  ])("is absent from %j", (value) => {
    expect(readUsage(value)).toBeUndefined();
  });

  it("adds up from frames that report parts and running totals", () => {
    const start = { inputTokens: 105, outputTokens: 1 };
    expect(mergeUsage(start, { inputTokens: 10, outputTokens: 42 })).toEqual({ inputTokens: 105, outputTokens: 42 });
    expect(mergeUsage(undefined, start)).toEqual(start);
    expect(mergeUsage(start, undefined)).toEqual(start);
  });
});
