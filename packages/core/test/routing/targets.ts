/** Targets for tests of routing. */

import type { GatewayConfig } from "../../src/config.js";
import { resolveConfig } from "../../src/config/resolve.js";
import type { ResolvedConfig } from "../../src/config/resolved.js";
import type { RoutedTarget } from "../../src/routing/resolve.js";
import type { RoutingFacts } from "../../src/routing/router.js";

const provider = {
  type: "openai-compatible",
  baseUrl: "http://127.0.0.1:1/v1",
  protocols: ["openai-chat", "openai-responses"],
} as const;

/** Providers `a`, `b` and `c`, which serve Chat Completions and Responses, and `claude`. */
export function resolved(config: Partial<GatewayConfig>): ResolvedConfig {
  const claude = { type: "anthropic", apiKey: "k" } as const;
  return resolveConfig({ providers: { a: provider, b: provider, c: provider, claude }, ...config }, {});
}

/** The targets of one virtual model. */
export function routedTargets(model: NonNullable<GatewayConfig["models"]>[string]): RoutedTarget[] {
  const { models } = resolved({ models: { m: model } });
  return models[0].targets.map((target) => ({ target, model: target.model, id: target.id }));
}

/** A plain request for the model `m`. */
export const plainFacts: RoutingFacts = {
  requested: "m",
  protocol: "openai-chat",
  api: "POST /v1/chat/completions",
  headers: {},
  body: {},
  metadata: new Map(),
  subject: undefined,
};

export function ids(targets: readonly RoutedTarget[]): string[] {
  return targets.map(({ id }) => id);
}
