/** The defaults of the configuration, but for those of the gate (gate/options.ts). Lengths of time are in ms. */

import type { ProviderType } from "./provider-config.js";
import type { ResolvedCooldown, ResolvedRetry, ResolvedTimeouts } from "./resolved.js";
import type { StatusCode } from "./status-code.js";
import type { ProtocolName } from "../gate/protocols/protocol.js";

export const defaultTimeouts: ResolvedTimeouts = Object.freeze({
  ttftTimeoutMs: undefined,
  requestTimeoutMs: 600_000,
  requestTimeoutIsSet: false,
  idleTimeoutMs: 300_000,
  idleTimeoutIsSet: false,
  connectTimeoutMs: 5_000,
  totalTimeoutMs: undefined,
  writeStallTimeoutMs: 60_000,
  lastTargetTtft: "enforce",
  minAttemptMs: 5_000,
});

export const defaultRetry: ResolvedRetry = Object.freeze({
  attempts: undefined,
  delayMs: 100,
  maxDelayMs: 8_000,
  onStatusCodes: Object.freeze([429, 500, 502, 503, 504, 529]),
});

export const defaultFallbackStatusCodes: readonly StatusCode[] = Object.freeze([
  401,
  402,
  403,
  404,
  408,
  424,
  429,
  "5xx",
] as const);

export const defaultCooldown: ResolvedCooldown = Object.freeze({
  failures: 2,
  failureRatio: 0.1,
  windowMs: 120_000,
  durationMs: 30_000,
  maxDurationMs: 300_000,
});

export const defaultMaxRequestBytes: number = 33_554_432;

export const defaultQueueTimeoutMs: number = 10_000;

export const defaultHeaderPrefix: string = "x-tfy-";

/** What a type serves where `protocols` does not say otherwise. */
export const defaultProtocols: Readonly<Record<ProviderType, readonly ProtocolName[]>> = {
  openai: ["openai-chat", "openai-responses"],
  "openai-compatible": ["openai-chat"],
  anthropic: ["anthropic-messages"],
  "anthropic-compatible": ["anthropic-messages"],
  azure: ["openai-chat", "openai-responses"],
  google: ["gemini", "gemini-interactions"],
  bedrock: ["bedrock-invoke", "bedrock-converse"],
  ollama: ["ollama"],
};
