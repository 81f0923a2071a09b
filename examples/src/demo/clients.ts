/** The official clients, each asking for a stream. */

import { Anthropic } from "@anthropic-ai/sdk";
import { OpenAI } from "openai";

export type Api = "Messages" | "Responses" | "Chat Completions";

export interface Ask {
  /** Of the gateway, without a path. */
  readonly url: string;
  readonly model: string;
  readonly headers: Readonly<Record<string, string>>;
  /** How often the SDK may repeat the request by itself. */
  readonly maxRetries: number;
  /** How long the SDK waits for the response's head, in ms. */
  readonly timeoutMs: number;
  /** The response's head has come. */
  readonly onHead: (status: number, headers: Headers) => void;
  /** An event has come, with the text in it. */
  readonly onEvent: (name: string, text: string) => void;
}

const prompt = "Say something about first chunks.";

export const clients: Readonly<
  Record<Api, { readonly name: string; readonly path: string; run(ask: Ask): Promise<void> }>
> = {
  Messages: { name: "@anthropic-ai/sdk", path: "/v1/messages", run: runMessages },
  Responses: { name: "openai", path: "/v1/responses", run: runResponses },
  "Chat Completions": { name: "openai", path: "/v1/chat/completions", run: runChat },
};

async function runMessages({ url, model, headers, maxRetries, timeoutMs, onHead, onEvent }: Ask): Promise<void> {
  const client = new Anthropic({
    apiKey: "demo-client",
    authToken: null,
    baseURL: url,
    maxRetries,
    timeout: timeoutMs,
  });
  const messages = [{ role: "user" as const, content: prompt }];
  const { data, response } = await client.messages
    .create({ model, max_tokens: 200, messages, stream: true }, { headers })
    .withResponse();
  onHead(response.status, response.headers);
  for await (const event of data) {
    const text = event.type === "content_block_delta" && event.delta.type === "text_delta" ? event.delta.text : "";
    onEvent(event.type, text);
  }
}

function openai({ url, maxRetries, timeoutMs }: Ask): OpenAI {
  return new OpenAI({ apiKey: "demo-client", baseURL: `${url}/v1`, maxRetries, timeout: timeoutMs });
}

async function runResponses(ask: Ask): Promise<void> {
  const { data, response } = await openai(ask)
    .responses.create({ model: ask.model, input: prompt, stream: true }, { headers: ask.headers })
    .withResponse();
  ask.onHead(response.status, response.headers);
  for await (const event of data)
    ask.onEvent(event.type, event.type === "response.output_text.delta" ? event.delta : "");
}

async function runChat(ask: Ask): Promise<void> {
  const messages = [{ role: "user" as const, content: prompt }];
  const { data, response } = await openai(ask)
    .chat.completions.create({ model: ask.model, messages, stream: true }, { headers: ask.headers })
    .withResponse();
  ask.onHead(response.status, response.headers);
  for await (const chunk of data) ask.onEvent("chunk", chunk.choices[0]?.delta.content ?? "");
}
