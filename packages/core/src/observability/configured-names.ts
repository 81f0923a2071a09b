/** Which names of models and targets come from the configuration: a bounded set, fit for metrics. */

import type { ResolvedConfig } from "../config/resolved.js";

export interface ConfiguredNames {
  readonly models: ReadonlySet<string>;
  /** `provider/model`; patterns are not among them. */
  readonly targets: ReadonlySet<string>;
}

export function configuredNames({ models, rules }: Pick<ResolvedConfig, "models" | "rules">): ConfiguredNames {
  const targets = [...models, ...rules].flatMap((destination) => destination.targets.map(({ id }) => id));
  return {
    models: new Set(models.map(({ name }) => name)),
    targets: new Set(targets.filter((id) => !id.endsWith("*"))),
  };
}
