/** The streaming APIs whose official clients the contract stands for. */

import {
  anthropicErrorFirst,
  anthropicHealthy,
  anthropicMessage,
  anthropicPreamble,
  anthropicTruncatedAfterText,
} from "../anthropic-streams.js";
import { chatCompletion, chatErrorFirst, chatHealthy, chatPreamble, chatTruncatedAfterText } from "../chat-streams.js";
import {
  responsesFailedAfterCreated,
  responsesHealthy,
  responsesPreamble,
  responsesResponse,
  responsesTruncatedAfterText,
} from "../responses-streams.js";

export type ClientProtocolName = "Messages" | "Responses" | "Chat Completions";

export interface ClientProtocol {
  readonly name: ClientProtocolName;
  /** What the client calls. */
  readonly path: string;
  readonly providerType: "anthropic" | "openai";
  /** Below the scripted provider's URL. */
  readonly baseUrlPath: string;
  /** A request's body; fields of `extra` are added. */
  body(extra?: Readonly<Record<string, unknown>>): Record<string, unknown>;
  readonly healthy: () => string[];
  readonly preamble: () => string[];
  /** Ends after some text. */
  readonly truncated: () => string[];
  /** A complete non-streaming answer. */
  readonly complete: () => Record<string, unknown>;
  readonly failing: () => string[];
  /** What the client is told when every target fails like that. */
  readonly failure: { readonly status: number; readonly type: string; readonly message: string };
  /** The event that makes a stream complete. */
  readonly terminal: string;
  /** What a client is told when the stream breaks after release: a part of the event, or nothing. */
  readonly brokenStreamEvent: string | undefined;
}

const messages: ClientProtocol = {
  name: "Messages",
  path: "/v1/messages",
  providerType: "anthropic",
  baseUrlPath: "",
  body: (extra) => ({
    model: "fast",
    max_tokens: 100,
    stream: true,
    messages: [{ role: "user", content: "Say something." }],
    ...extra,
  }),
  healthy: () => anthropicHealthy(),
  preamble: () => anthropicPreamble(),
  truncated: () => anthropicTruncatedAfterText(),
  complete: () => anthropicMessage(),
  failing: () => anthropicErrorFirst(),
  failure: { status: 503, type: "overloaded_error", message: "Overloaded" },
  terminal: anthropicHealthy().at(-1) ?? "",
  brokenStreamEvent: undefined,
};

const responses: ClientProtocol = {
  name: "Responses",
  path: "/v1/responses",
  providerType: "openai",
  baseUrlPath: "/v1",
  body: (extra) => ({ model: "fast", stream: true, input: "Say something.", ...extra }),
  healthy: () => responsesHealthy(),
  preamble: () => responsesPreamble(),
  truncated: () => responsesTruncatedAfterText(),
  complete: () => responsesResponse(),
  failing: () => responsesFailedAfterCreated({ message: "Something broke." }),
  failure: { status: 500, type: "server_error", message: "Something broke. (server_error)" },
  terminal: responsesHealthy().at(-1) ?? "",
  brokenStreamEvent: '"type":"response.failed"',
};

const chat: ClientProtocol = {
  name: "Chat Completions",
  path: "/v1/chat/completions",
  providerType: "openai",
  baseUrlPath: "/v1",
  body: (extra) => ({
    model: "fast",
    stream: true,
    messages: [{ role: "user", content: "Say something." }],
    ...extra,
  }),
  healthy: () => chatHealthy(),
  preamble: () => chatPreamble(),
  truncated: () => chatTruncatedAfterText(),
  complete: () => chatCompletion(),
  failing: () => chatErrorFirst({ message: "Something broke." }),
  failure: { status: 500, type: "server_error", message: "Something broke." },
  terminal: chatHealthy().at(-1) ?? "",
  brokenStreamEvent: '"error":{',
};

export const clientProtocols: readonly ClientProtocol[] = [messages, responses, chat];

const byName: Readonly<Record<ClientProtocolName, ClientProtocol>> = {
  Messages: messages,
  Responses: responses,
  "Chat Completions": chat,
};

/** For facts that hold for one of them alone. */
export function protocolNamed(name: ClientProtocolName): ClientProtocol {
  return byName[name];
}

/** For facts that do not depend on the protocol. */
export const anyProtocol: ClientProtocol = messages;
