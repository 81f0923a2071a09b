/** Inheritance of what a target, a virtual model and the gateway may each set: the nearest wins, key by key. */

import type { RetryConfig, Timeouts } from "./model-config.js";
import type { Path, Problems } from "./problems.js";
import type { ResolvedRetry, ResolvedTimeouts, TargetDefaults } from "./resolved.js";
import type { StatusCode } from "./status-code.js";

/** The settings of one level. Clocks may stand in `timeouts` or beside it. */
interface Level extends Timeouts {
  readonly timeouts?: Timeouts;
  readonly retry?: RetryConfig;
  readonly fallbackStatusCodes?: readonly StatusCode[];
}

const clockNames = [
  "ttftTimeoutMs",
  "requestTimeoutMs",
  "idleTimeoutMs",
  "connectTimeoutMs",
  "totalTimeoutMs",
  "writeStallTimeoutMs",
  "lastTargetTtft",
  "minAttemptMs",
] as const satisfies readonly (keyof Timeouts)[];

export function inherit(level: Level, from: TargetDefaults, path: Path, problems: Problems): TargetDefaults {
  for (const name of clockNames) {
    if (level[name] !== undefined && level.timeouts?.[name] !== undefined) {
      problems.add([...path, name], `is set twice: keep it here or in \`timeouts.${name}\``);
    }
  }
  return Object.freeze({
    timeouts: inheritTimeouts({ ...defined(level.timeouts ?? {}), ...defined(level) }, from.timeouts),
    retry: inheritRetry(level.retry, from.retry, [...path, "retry"], problems),
    fallbackStatusCodes:
      level.fallbackStatusCodes === undefined
        ? from.fallbackStatusCodes
        : Object.freeze([...level.fallbackStatusCodes]),
  });
}

/** Only the clocks, and only those with a value, so that spreading does not overwrite with undefined. */
function defined(level: Timeouts): Timeouts {
  return Object.fromEntries(clockNames.filter((name) => level[name] !== undefined).map((name) => [name, level[name]]));
}

function inheritTimeouts(own: Timeouts, from: ResolvedTimeouts): ResolvedTimeouts {
  return Object.freeze({
    ttftTimeoutMs: own.ttftTimeoutMs ?? from.ttftTimeoutMs,
    requestTimeoutMs: own.requestTimeoutMs ?? from.requestTimeoutMs,
    requestTimeoutIsSet: own.requestTimeoutMs !== undefined || from.requestTimeoutIsSet,
    idleTimeoutMs: own.idleTimeoutMs ?? from.idleTimeoutMs,
    idleTimeoutIsSet: own.idleTimeoutMs !== undefined || from.idleTimeoutIsSet,
    connectTimeoutMs: own.connectTimeoutMs ?? from.connectTimeoutMs,
    totalTimeoutMs: own.totalTimeoutMs ?? from.totalTimeoutMs,
    writeStallTimeoutMs: own.writeStallTimeoutMs ?? from.writeStallTimeoutMs,
    lastTargetTtft: own.lastTargetTtft ?? from.lastTargetTtft,
    minAttemptMs: own.minAttemptMs ?? from.minAttemptMs,
  });
}

function inheritRetry(
  own: RetryConfig | undefined,
  from: ResolvedRetry,
  path: Path,
  problems: Problems,
): ResolvedRetry {
  if (own === undefined) return from;
  const delayMs = own.delayMs ?? from.delayMs;
  const maxDelayMs = own.maxDelayMs ?? from.maxDelayMs;
  if (delayMs > maxDelayMs) {
    const key = own.delayMs === undefined ? "maxDelayMs" : "delayMs";
    problems.add([...path, key], `delayMs (${delayMs}) must not be above maxDelayMs (${maxDelayMs}): set both`);
  }
  return Object.freeze({
    attempts: own.attempts ?? from.attempts,
    delayMs,
    maxDelayMs,
    onStatusCodes: own.onStatusCodes === undefined ? from.onStatusCodes : Object.freeze([...own.onStatusCodes]),
  });
}
