/** Anthropic Messages streams. https://platform.claude.com/docs/en/build-with-claude/streaming */

import { defaultText, deltasOf, sseEvent } from "./streams.js";
import type { StreamErrorOptions, StreamOptions } from "./streams.js";

interface TypedEvent {
  readonly type: string;
}

function event(data: TypedEvent & Record<string, unknown>): string {
  return sseEvent(data, data.type);
}

/** `message_start`, an empty `content_block_start` and a `ping`: held, since none of them is output. */
export function anthropicPreamble(options: StreamOptions = {}): string[] {
  const { model = "claude-sonnet-4-5", id = "msg_01FirstChunk" } = options;
  return [
    event({
      type: "message_start",
      message: {
        id,
        type: "message",
        role: "assistant",
        model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 25, output_tokens: 1 },
      },
    }),
    event({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
    event({ type: "ping" }),
  ];
}

export function anthropicTextDeltas(text: string = defaultText): string[] {
  return deltasOf(text).map((part) =>
    event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: part } }),
  );
}

/** The end after output. `stopReason` default `end_turn`, `outputTokens` default 15. */
export function anthropicEnding(stopReason: string = "end_turn", outputTokens: number = 15): string[] {
  return [
    event({ type: "content_block_stop", index: 0 }),
    event({
      type: "message_delta",
      delta: { stop_reason: stopReason, stop_sequence: null },
      usage: { output_tokens: outputTokens },
    }),
    event({ type: "message_stop" }),
  ];
}

/** A complete answer. */
export function anthropicHealthy(options: StreamOptions = {}): string[] {
  return [...anthropicPreamble(options), ...anthropicTextDeltas(options.text), ...anthropicEnding()];
}

/** An answer that is a tool call and nothing else. */
export function anthropicToolCall(options: StreamOptions = {}): string[] {
  const [start = ""] = anthropicPreamble(options);
  const input = ['{"city":', ' "Berlin"', "}"];
  return [
    start,
    event({
      type: "content_block_start",
      index: 0,
      content_block: { type: "tool_use", id: "toolu_01FirstChunk", name: "get_weather", input: {} },
    }),
    event({ type: "ping" }),
    ...input.map((part) =>
      event({
        type: "content_block_delta",
        index: 0,
        delta: { type: "input_json_delta", partial_json: part },
      }),
    ),
    ...anthropicEnding("tool_use"),
  ];
}

/** One `error` event. Default: `overloaded_error`, `Overloaded`. */
export function anthropicError(options: StreamErrorOptions = {}): string {
  const { type = "overloaded_error", message = "Overloaded" } = options;
  return event({ type: "error", error: { details: null, type, message }, request_id: "req_01FirstChunk" });
}

/** The error is the first event. */
export function anthropicErrorFirst(options: StreamErrorOptions = {}): string[] {
  return [anthropicError(options)];
}

/** The error follows `message_start`, an empty block start and a ping. */
export function anthropicErrorAfterPreamble(options: StreamErrorOptions = {}): string[] {
  return [...anthropicPreamble(options), anthropicError(options)];
}

/** The error follows some text: after release nothing can be retried. */
export function anthropicErrorAfterText(options: StreamErrorOptions = {}): string[] {
  return [...anthropicTruncatedAfterText(options), anthropicError(options)];
}

/** Events, then the end, with neither output nor a terminal. */
export function anthropicTruncatedBeforeText(options: StreamOptions = {}): string[] {
  return anthropicPreamble(options);
}

/** Ends after some text, without `message_stop`. */
export function anthropicTruncatedAfterText(options: StreamOptions = {}): string[] {
  return [...anthropicPreamble(options), ...anthropicTextDeltas(options.text).slice(0, 3)];
}

/** A plain stop without any output and with a usage of `outputTokens`, default 0. */
export function anthropicEmptyCompletion(options: StreamOptions & { readonly outputTokens?: number } = {}): string[] {
  const [start = ""] = anthropicPreamble(options);
  return [start, ...anthropicEnding("end_turn", options.outputTokens ?? 0).slice(1)];
}

/** A refusal without a block: a success of the API. */
export function anthropicRefusal(options: StreamOptions = {}): string[] {
  const [start = ""] = anthropicPreamble(options);
  return [start, event({ type: "ping" }), ...anthropicEnding("refusal", 0).slice(1)];
}

/** A complete non-streaming answer, as a value. */
export function anthropicMessage(options: StreamOptions = {}): Record<string, unknown> {
  const { model = "claude-sonnet-4-5", id = "msg_01FirstChunk", text = defaultText } = options;
  return {
    id,
    type: "message",
    role: "assistant",
    model,
    content: [{ type: "text", text }],
    stop_reason: "end_turn",
    stop_sequence: null,
    usage: { input_tokens: 25, output_tokens: 15 },
  };
}
