/** The shape of a provider. What depends on its type is checked in resolve-provider.ts. */

import { z } from "zod";

import type { ProtocolName } from "../gate/protocols/protocol.js";
import type { ApiKey, ProviderConfig, ProviderType, SignRequest } from "./provider-config.js";
import { choice, flag, functionOf, hiddenText, list, listOfSome, record, strict, text } from "./schema-parts.js";

const types: readonly ProviderType[] = [
  "openai",
  "openai-compatible",
  "anthropic",
  "anthropic-compatible",
  "azure",
  "google",
  "bedrock",
  "ollama",
];

const protocols: readonly ProtocolName[] = [
  "anthropic-messages",
  "openai-responses",
  "openai-chat",
  "gemini",
  "gemini-interactions",
  "bedrock-invoke",
  "bedrock-converse",
  "ollama",
];

// An undefined key gets its own message later: here it would read as absent.
const apiKey = z.custom<ApiKey>((value) => ["string", "function", "undefined"].includes(typeof value), {
  error: "must be a string or a function that answers one; the value is not shown here",
});

export const providerSchema: z.ZodType<ProviderConfig> = strict("a provider", {
  type: choice(types),
  baseUrl: hiddenText("a URL as a string").optional(),
  apiKey: apiKey.optional(),
  forwardClientCredentials: flag.optional(),
  headers: record(hiddenText("a string"), "header names with their values").optional(),
  forwardHeaders: list(text("a header name"), "header names").optional(),
  protocols: listOfSome(choice(protocols), "protocols").optional(),
  requireTerminal: flag.optional(),
  apiVersion: text("an API version such as 2024-10-21").optional(),
  region: text("an AWS region such as eu-central-1").optional(),
  sign: functionOf<SignRequest>("a function that answers the headers to add").optional(),
});
