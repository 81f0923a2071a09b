/** The `gate` options and how they become the rules of one attempt. */

import { responsesNoOutput } from "./failures.js";
import type { EmptyCompletionPolicy, GateRules } from "./gate.js";
import type { GateProtocol } from "./protocols/protocol.js";

/** Every value present. Defaults: {@link defaultGateOptions}. */
export interface ResolvedGateOptions {
  readonly responsesInBandErrors: boolean;
  readonly inBandErrors: boolean;
  readonly emptyCompletion: EmptyCompletionPolicy;
  readonly maxLifecycleEvents: number;
  readonly maxHeldBytes: number;
  readonly maxHeldEvents: number;
  readonly maxHoldMs: number;
  readonly failureDetailTimeoutMs: number;
  readonly onOverflow: "release" | "fail";
}

export const defaultGateOptions: ResolvedGateOptions = {
  responsesInBandErrors: true,
  inBandErrors: true,
  emptyCompletion: "auto",
  maxLifecycleEvents: 4,
  maxHeldBytes: 4_194_304,
  maxHeldEvents: 256,
  maxHoldMs: 50_000,
  failureDetailTimeoutMs: 1_000,
  onOverflow: "release",
};

export interface AttemptFacts {
  readonly ttftTimeoutMs: number | undefined;
  readonly anotherTarget: boolean;
  readonly answersToolResult: boolean;
  readonly requireTerminal: boolean;
}

/** Which validation holds for a stream: section "When the gate is armed" of the README. */
export function gateRules(protocol: GateProtocol, options: ResolvedGateOptions, facts: AttemptFacts): GateRules {
  const responses = protocol.name === "openai-responses";
  // A native Responses call obeys its own switch alone, whoever serves it.
  const validate = responses ? options.responsesInBandErrors : options.inBandErrors;
  const off = protocol.name === "anthropic-messages" ? "overload" : facts.ttftTimeoutMs === undefined ? "first-byte" : "first-event";
  const validation = validate ? "full" : off;
  return {
    validation,
    ttftTimeoutMs: facts.ttftTimeoutMs,
    noOutputMessage: responses && validate ? responsesNoOutput : undefined,
    alwaysReportsUsage: protocol.alwaysReportsUsage,
    emptyCompletion: options.emptyCompletion,
    anotherTarget: facts.anotherTarget,
    answersToolResult: facts.answersToolResult,
    maxLifecycleEvents: options.maxLifecycleEvents,
    maxHeldEvents: options.maxHeldEvents,
    onOverflow: options.onOverflow,
    requireTerminal: facts.requireTerminal,
  };
}
