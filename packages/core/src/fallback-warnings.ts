/** What a gateway warns of when it is made: virtual models that cannot fall back. */

import type { ResolvedConfig, ResolvedModel } from "./config/resolved.js";
import type { ProtocolName } from "./gate/protocols/protocol.js";

interface FallbackWarning {
  readonly model: string;
  readonly api: ProtocolName;
  /** The only target, as configured. */
  readonly target: string;
}

/** Each API of a model that one target alone serves. */
function fallbackWarnings({ models }: Pick<ResolvedConfig, "models">): FallbackWarning[] {
  return models.flatMap((model) => [...servedApis(model)].flatMap((api) => warning(model, api)));
}

function servedApis({ targets }: ResolvedModel): ReadonlySet<ProtocolName> {
  return new Set(targets.flatMap(({ provider }) => [...provider.protocols]));
}

function warning({ name, targets }: ResolvedModel, api: ProtocolName): FallbackWarning[] {
  const ids = new Set(targets.filter(({ provider }) => provider.protocols.has(api)).map(({ id }) => id));
  const [target] = ids;
  return ids.size === 1 && target !== undefined ? [{ model: name, api, target }] : [];
}

export function warnOfFallback({ models, logger }: Pick<ResolvedConfig, "models" | "logger">): void {
  if (logger === undefined) return;
  for (const facts of fallbackWarnings({ models })) {
    logger.warn(facts, "the virtual model cannot fall back for this API: only one target serves it");
  }
}
