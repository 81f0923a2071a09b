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

/** The longest delay that timers keep, and the largest count: 2^31 - 1. */
const most = 2_147_483_647;

/**
 * The options with the defaults in place of those that are missing.
 *
 * @throws TypeError for a value out of range
 */
export function resolveGateOptions(options: Partial<ResolvedGateOptions>): ResolvedGateOptions {
  const resolved = { ...defaultGateOptions };
  for (const key of Object.keys(resolved) as (keyof ResolvedGateOptions)[]) {
    if (options[key] !== undefined) Object.assign(resolved, { [key]: options[key] });
  }
  checkFlag("responsesInBandErrors", resolved.responsesInBandErrors);
  checkFlag("inBandErrors", resolved.inBandErrors);
  checkName("emptyCompletion", resolved.emptyCompletion, ["auto", "release", "fallback", "fail"]);
  checkName("onOverflow", resolved.onOverflow, ["release", "fail"]);
  checkWhole("maxLifecycleEvents", resolved.maxLifecycleEvents, 0);
  checkWhole("maxHeldBytes", resolved.maxHeldBytes, 65_536);
  checkWhole("maxHeldEvents", resolved.maxHeldEvents, 1);
  checkWhole("maxHoldMs", resolved.maxHoldMs, 0);
  checkWhole("failureDetailTimeoutMs", resolved.failureDetailTimeoutMs, 1);
  return resolved;
}

/** @throws TypeError unless it is missing or a whole number from `least` to 2^31 - 1 */
export function checkWhole(name: string, value: unknown, least: number): void {
  if (value === undefined || (Number.isInteger(value) && (value as number) >= least && (value as number) <= most))
    return;
  throw new TypeError(`${name}: must be a whole number from ${least} to ${most}`);
}

function checkFlag(name: string, value: unknown): void {
  if (typeof value !== "boolean") throw new TypeError(`${name}: must be true or false`);
}

function checkName(name: string, value: string, names: readonly string[]): void {
  if (!names.includes(value)) throw new TypeError(`${name}: must be one of ${names.join(", ")}`);
}

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
  const off =
    protocol.name === "anthropic-messages"
      ? "overload"
      : facts.ttftTimeoutMs === undefined
        ? "first-byte"
        : "first-event";
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
