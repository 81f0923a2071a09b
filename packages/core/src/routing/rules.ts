/** Rules: the first whose conditions all hold decides, over the virtual models. */

import type { ResolvedRule } from "../config/resolved.js";
import { matchesName } from "../config/target-ref.js";
import { hasMetadata, type Metadata } from "./metadata.js";

export interface RuleFacts {
  /** The model that the client named. */
  readonly requested: string;
  /** As the host's auth answered. */
  readonly subject: string | undefined;
  readonly metadata: Metadata;
}

export function matchRule(rules: readonly ResolvedRule[], facts: RuleFacts): ResolvedRule | undefined {
  if (rules.length === 0) return undefined;
  return rules.find(({ when: { subjects, models, metadata } }) => {
    if (subjects !== undefined && (facts.subject === undefined || !subjects.has(facts.subject))) return false;
    if (models !== undefined && !models.some((name) => matchesName(name, facts.requested))) return false;
    return hasMetadata(facts.metadata, metadata);
  });
}
