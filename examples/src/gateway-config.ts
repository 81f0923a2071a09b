/** The gateway that the Express and the Koa example share: two virtual models, each with a fallback. */

import type { GatewayConfig } from "@first-chunk/core";
import type { Variable } from "./environment.js";

export const serverVariables = {
  PORT: { meaning: "port to listen on, on 127.0.0.1; 0 = any" },
  CLIENT_TOKEN: { meaning: "what clients of this server send as their API key" },
  ANTHROPIC_API_KEY: { meaning: "key of the Anthropic account" },
  OPENAI_API_KEY: { meaning: "key of the OpenAI account" },
  ANTHROPIC_URL: { meaning: "without /v1", fallback: "https://api.anthropic.com" },
  OPENAI_URL: { meaning: "with /v1", fallback: "https://api.openai.com/v1" },
} satisfies Record<string, Variable>;

export function gatewayConfig(settings: Readonly<Record<keyof typeof serverVariables, string>>): GatewayConfig {
  return {
    providers: {
      anthropic: { type: "anthropic", baseUrl: settings.ANTHROPIC_URL, apiKey: settings.ANTHROPIC_API_KEY },
      openai: { type: "openai", baseUrl: settings.OPENAI_URL, apiKey: settings.OPENAI_API_KEY },
    },
    models: {
      // Clients ask for "chat" and need not know which model it is; `x-tfy-resolved-model` tells them. The second target takes over when the first one
      // answers with an error, reports one inside its stream, stays silent for 20 s, or ends without output.
      chat: {
        routing: "priority",
        ttftTimeoutMs: 20_000,
        targets: [{ target: "openai/gpt-5.1" }, { target: "openai/gpt-5-mini" }],
      },
      // Claude Code and other clients that name a model keep it, with a smaller one to fall back to.
      "claude-*": {
        routing: "priority",
        targets: [{ target: "anthropic/*" }, { target: "anthropic/claude-haiku-4-5" }],
      },
    },
  };
}
