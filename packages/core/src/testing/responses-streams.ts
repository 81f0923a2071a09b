/** OpenAI Responses streams. https://platform.openai.com/docs/api-reference/responses-streaming */

import { defaultText, deltasOf, sseEvent } from "./streams.js";
import type { StreamErrorOptions, StreamOptions } from "./streams.js";

type Fields = Readonly<Record<string, unknown>>;

/** Writes events in order and numbers them from 0. */
class ResponsesWriter {
  readonly events: string[] = [];

  add(type: string, fields: Fields): this {
    this.events.push(sseEvent({ type, sequence_number: this.events.length, ...fields }, type));
    return this;
  }

  addAll(type: string, list: readonly Fields[]): this {
    for (const fields of list) this.add(type, fields);
    return this;
  }
}

/** The response object that lifecycle events carry. */
export function responseObject(options: StreamOptions = {}, fields: Fields = {}): Record<string, unknown> {
  const { model = "gpt-5.1", id = "resp_01firstchunk" } = options;
  return {
    id,
    object: "response",
    created_at: 1_760_000_000,
    status: "in_progress",
    error: null,
    incomplete_details: null,
    instructions: null,
    model,
    output: [],
    parallel_tool_calls: true,
    tool_choice: "auto",
    tools: [],
    usage: null,
    ...fields,
  };
}

function preamble(options: StreamOptions): ResponsesWriter {
  const response = responseObject(options);
  return new ResponsesWriter().add("response.created", { response }).add("response.in_progress", { response });
}

const itemId = "msg_01firstchunk";
const place: Fields = { item_id: itemId, output_index: 0, content_index: 0 };

function messageItem(text: string | undefined): Record<string, unknown> {
  return {
    id: itemId,
    type: "message",
    status: text === undefined ? "in_progress" : "completed",
    role: "assistant",
    content: text === undefined ? [] : [{ type: "output_text", annotations: [], text }],
  };
}

function withItemStart(options: StreamOptions): ResponsesWriter {
  return preamble(options)
    .add("response.output_item.added", { output_index: 0, item: messageItem(undefined) })
    .add("response.content_part.added", { ...place, part: { type: "output_text", annotations: [], text: "" } });
}

const usage = { input_tokens: 25, output_tokens: 15, total_tokens: 40 };

/** `response.created` and `response.in_progress`. */
export function responsesPreamble(options: StreamOptions = {}): string[] {
  return preamble(options).events;
}

/** A complete answer. */
export function responsesHealthy(options: StreamOptions = {}): string[] {
  const { text = defaultText } = options;
  const item = messageItem(text);
  return withItemStart(options)
    .addAll(
      "response.output_text.delta",
      deltasOf(text).map((delta) => ({ ...place, delta })),
    )
    .add("response.output_text.done", { ...place, text })
    .add("response.content_part.done", { ...place, part: { type: "output_text", annotations: [], text } })
    .add("response.output_item.done", { output_index: 0, item })
    .add("response.completed", {
      response: responseObject(options, { status: "completed", output: [item], usage }),
    }).events;
}

/** `response.created`, then `response.failed` with a reason. Default `server_error`. */
export function responsesFailedAfterCreated(options: StreamErrorOptions = {}): string[] {
  const { code = "server_error", message = "The server had an error while processing your request." } = options;
  const created = responseObject(options);
  const failed = responseObject(options, { status: "failed", error: { code, message } });
  return new ResponsesWriter()
    .add("response.created", { response: created })
    .add("response.failed", { response: failed }).events;
}

/** As recorded: `error` with a nested body after the preamble, then `response.failed`. Default a rate limit. */
export function responsesErrorThenFailed(options: StreamErrorOptions = {}): string[] {
  const { type = "tokens", code = "rate_limit_exceeded", message = "Rate limit reached for gpt-5.1" } = options;
  return preamble(options)
    .add("error", { error: { type, code, message, param: null } })
    .add("response.failed", {
      response: responseObject(options, { status: "failed", error: { code, message } }),
    }).events;
}

/** The flat `error` event of the published schema, as the first event. */
export function responsesErrorFirst(options: StreamErrorOptions = {}): string[] {
  const { code = "server_error", message = "The server had an error while processing your request." } = options;
  return new ResponsesWriter().add("error", { code, message, param: null }).events;
}

/** Microsoft Foundry: `response.failed` without a reason, and the reason in the frame that follows. */
export function responsesSplitFailure(options: StreamErrorOptions = {}): string[] {
  const { code = "content_policy_violation", message = "The request was rejected by the content policy." } = options;
  return new ResponsesWriter()
    .add("response.created", { response: responseObject(options) })
    .add("response.failed", { response: responseObject(options, { status: "failed" }) })
    .add("error", { error: { code, message } }).events;
}

/** `response.failed` without a reason, and nothing after it. */
export function responsesUnexplainedFailure(options: StreamOptions = {}): string[] {
  return responsesSplitFailure(options).slice(0, 2);
}

/** Ends after the preamble, with neither output nor a terminal. */
export function responsesTruncatedBeforeText(options: StreamOptions = {}): string[] {
  return responsesPreamble(options);
}

/** Ends after some text, without `response.completed`. */
export function responsesTruncatedAfterText(options: StreamOptions = {}): string[] {
  const { text = defaultText } = options;
  const first = deltasOf(text).slice(0, 3);
  return withItemStart(options).addAll(
    "response.output_text.delta",
    first.map((delta) => ({ ...place, delta })),
  ).events;
}

/** `response.completed` without output. `outputTokens` default 0. */
export function responsesEmptyCompletion(options: StreamOptions & { readonly outputTokens?: number } = {}): string[] {
  const { outputTokens = 0 } = options;
  const spent = { input_tokens: 25, output_tokens: outputTokens, total_tokens: 25 + outputTokens };
  return preamble(options).add("response.completed", {
    response: responseObject(options, { status: "completed", usage: spent }),
  }).events;
}

/** A complete non-streaming answer, as a value. */
export function responsesResponse(options: StreamOptions = {}): Record<string, unknown> {
  const { text = defaultText } = options;
  return responseObject(options, { status: "completed", output: [messageItem(text)], usage });
}
