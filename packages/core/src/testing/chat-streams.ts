/** OpenAI Chat Completions streams. https://platform.openai.com/docs/api-reference/chat-streaming */

import { defaultText, deltasOf, sseEvent } from "./streams.js";
import type { StreamErrorOptions, StreamOptions } from "./streams.js";

function chatChunk(options: StreamOptions, fields: Record<string, unknown>): string {
  const { model = "gpt-5.1", id = "chatcmpl-01firstchunk" } = options;
  return sseEvent({ id, object: "chat.completion.chunk", created: 1_760_000_000, model, ...fields });
}

function choice(options: StreamOptions, delta: Record<string, unknown>, finishReason: string | null = null): string {
  return chatChunk(options, {
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finishReason }],
  });
}

const done = "data: [DONE]\n\n";

/** The role chunk with empty content: held. */
export function chatPreamble(options: StreamOptions = {}): string[] {
  return [choice(options, { role: "assistant", content: "", refusal: null })];
}

export function chatTextDeltas(options: StreamOptions = {}): string[] {
  return deltasOf(options.text ?? defaultText).map((content) => choice(options, { content }));
}

/** A complete answer with usage, as with `stream_options.include_usage`. */
export function chatHealthy(options: StreamOptions = {}): string[] {
  return [
    ...chatPreamble(options),
    ...chatTextDeltas(options),
    choice(options, {}, "stop"),
    chatChunk(options, {
      choices: [],
      usage: { prompt_tokens: 25, completion_tokens: 15, total_tokens: 40 },
    }),
    done,
  ];
}

/** One `data:` event with an error body and no `[DONE]`. Default `server_error`. */
export function chatError(options: StreamErrorOptions = {}): string {
  const {
    type = "server_error",
    code = null,
    message = "The server had an error while processing your request.",
  } = options;
  return sseEvent({ error: { message, type, param: null, code } });
}

/** The error is the first event. */
export function chatErrorFirst(options: StreamErrorOptions = {}): string[] {
  return [chatError(options)];
}

/** The error follows the role chunk. */
export function chatErrorAfterPreamble(options: StreamErrorOptions = {}): string[] {
  return [...chatPreamble(options), chatError(options)];
}

/** The error follows some text. */
export function chatErrorAfterText(options: StreamErrorOptions = {}): string[] {
  return [...chatTruncatedAfterText(options), chatError(options)];
}

/** Ends after the role chunk. */
export function chatTruncatedBeforeText(options: StreamOptions = {}): string[] {
  return chatPreamble(options);
}

/** Ends after some text, with neither a finish reason nor `[DONE]`. */
export function chatTruncatedAfterText(options: StreamOptions = {}): string[] {
  return [...chatPreamble(options), ...chatTextDeltas(options).slice(0, 3)];
}

/** A plain stop without content. Usage is reported only where `outputTokens` is given. */
export function chatEmptyCompletion(options: StreamOptions & { readonly outputTokens?: number } = {}): string[] {
  const { outputTokens } = options;
  const usage =
    outputTokens === undefined
      ? []
      : [
          chatChunk(options, {
            choices: [],
            usage: { prompt_tokens: 25, completion_tokens: outputTokens, total_tokens: 25 + outputTokens },
          }),
        ];
  return [...chatPreamble(options), choice(options, {}, "stop"), ...usage, done];
}

/** `[DONE]` and nothing else. */
export function chatOnlyDone(): string[] {
  return [done];
}

/** A complete non-streaming answer, as a value. */
export function chatCompletion(options: StreamOptions = {}): Record<string, unknown> {
  const { model = "gpt-5.1", id = "chatcmpl-01firstchunk", text = defaultText } = options;
  return {
    id,
    object: "chat.completion",
    created: 1_760_000_000,
    model,
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: text, refusal: null },
        logprobs: null,
        finish_reason: "stop",
      },
    ],
    usage: { prompt_tokens: 25, completion_tokens: 15, total_tokens: 40 },
  };
}
