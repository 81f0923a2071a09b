/** `provider/model` as a client names it. */

import { targetFor } from "./resolve-target.js";
import type { ResolvedConfig, ResolvedTarget } from "./resolved.js";
import { matchesName } from "./target-ref.js";

/** The target, or undefined where the provider is unknown or `directModels` does not allow it. */
export function directTarget(config: ResolvedConfig, provider: string, model: string): ResolvedTarget | undefined {
  const found = config.providers.get(provider);
  // A star is no model: it would stand for whatever was asked for, which is the star.
  if (found === undefined || model === "" || model === "*") return undefined;
  const { directModels } = config;
  const allowed =
    typeof directModels === "boolean"
      ? directModels
      : directModels.some((pattern) => matchesName(pattern, `${provider}/${model}`));
  return allowed ? targetFor(config, found, model) : undefined;
}
