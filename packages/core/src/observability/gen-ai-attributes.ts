/**
 * Attributes by the conventions for generative AI; what they have no name for is `first_chunk.*`.
 * https://github.com/open-telemetry/semantic-conventions-genai/tree/main/docs/registry
 */

import type { Attributes } from "@opentelemetry/api";
import type { ProviderType } from "../config/provider-config.js";
import type { ProtocolName } from "../gate/protocols/protocol.js";
import type { ObservedAttemptStartEvent, ObservedFailure, RequestStartEvent, TokenUsage } from "./observer.js";

/** The well-known values of `gen_ai.provider.name`. A compatible server is not the vendor: it has its configured name. */
const vendors: Readonly<Partial<Record<ProviderType, string>>> = {
  openai: "openai",
  anthropic: "anthropic",
  azure: "azure.ai.openai",
  google: "gcp.gemini",
  bedrock: "aws.bedrock",
};

/** `gen_ai.operation.name`. */
export function operationOf(protocol: ProtocolName): "chat" | "generate_content" {
  return protocol === "gemini" || protocol === "gemini-interactions" ? "generate_content" : "chat";
}

export function requestAttributes({ requestId, protocol, streaming, requestedModel }: RequestStartEvent): Attributes {
  return {
    "first_chunk.request_id": requestId,
    "first_chunk.protocol": protocol,
    "gen_ai.request.model": requestedModel,
    "gen_ai.request.stream": streaming,
  };
}

/** Those that metrics carry, too. */
export function attemptAttributes({
  protocol,
  provider,
  providerType,
  model,
  target,
  origin,
}: ObservedAttemptStartEvent): Attributes {
  const { hostname, port, protocol: scheme } = new URL(origin);
  return {
    "gen_ai.operation.name": operationOf(protocol),
    "gen_ai.provider.name": vendors[providerType] ?? provider,
    "gen_ai.request.model": model,
    "server.address": hostname.replace(/^\[|\]$/g, ""),
    "server.port": port === "" ? (scheme === "http:" ? 80 : 443) : Number(port),
    "first_chunk.target": target,
  };
}

export function failureAttributes({ kind, code, status }: ObservedFailure): Attributes {
  return { "error.type": code, "first_chunk.failure.kind": kind, "first_chunk.failure.status": status };
}

export function usageAttributes(usage: TokenUsage): Attributes {
  return {
    "gen_ai.usage.input_tokens": usage.inputTokens,
    "gen_ai.usage.output_tokens": usage.outputTokens,
    "gen_ai.usage.cache_read.input_tokens": usage.cachedTokens,
    "gen_ai.usage.cache_creation.input_tokens": usage.cacheWriteTokens,
    "gen_ai.usage.reasoning.output_tokens": usage.reasoningTokens,
  };
}
