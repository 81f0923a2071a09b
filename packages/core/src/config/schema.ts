/** The shape of the whole configuration. */

import { z } from "zod";

import type { CooldownConfig, Dispatcher, GateOptions, GatewayConfig, HealthStore, Logger } from "../config.js";
import type { Observer } from "../observability/observer.js";
import type { Path, Problems } from "./problems.js";
import { modelSchema, retrySchema, ruleSchema, statusCodesSchema, timeoutsSchema } from "./schema-model.js";
import {
  choice,
  count,
  countOrZero,
  flag,
  fraction,
  list,
  milliseconds,
  millisecondsOrZero,
  objectWith,
  record,
  strict,
  text,
  whole,
} from "./schema-parts.js";
import { providerSchema } from "./schema-provider.js";

const gateSchema: z.ZodType<GateOptions> = strict("gate", {
  responsesInBandErrors: flag.optional(),
  inBandErrors: flag.optional(),
  emptyCompletion: choice(["auto", "release", "fallback", "fail"]).optional(),
  maxLifecycleEvents: countOrZero.optional(),
  maxHeldBytes: whole(65_536, 2_147_483_647, "bytes").optional(),
  maxHeldEvents: count.optional(),
  maxHoldMs: millisecondsOrZero.optional(),
  failureDetailTimeoutMs: milliseconds.optional(),
  onOverflow: choice(["release", "fail"]).optional(),
});

const cooldownObject: z.ZodType<CooldownConfig> = strict("cooldown", {
  failures: count.optional(),
  failureRatio: fraction(1).optional(),
  windowMs: milliseconds.optional(),
  durationMs: milliseconds.optional(),
  maxDurationMs: milliseconds.optional(),
});

const configSchema: z.ZodType<GatewayConfig> = strict("the configuration", {
  providers: record(providerSchema, "provider names with their settings"),
  models: record(modelSchema, "names that clients ask for, with their targets").optional(),
  directModels: z
    .union([flag, list(text("a name"), "names")], { error: "must be true, false or an array of provider/model names" })
    .optional(),
  rules: list(ruleSchema, "rules").optional(),
  gate: gateSchema.optional(),
  timeouts: timeoutsSchema.optional(),
  retry: retrySchema.optional(),
  fallbackStatusCodes: statusCodesSchema.optional(),
  cooldown: z.union([z.literal(false), cooldownObject], { error: "must be false or an object" }).optional(),
  onMidStreamFailure: choice(["event", "abort"]).optional(),
  headerPrefix: text("a header name prefix that ends in a hyphen").optional(),
  exposeRouting: flag.optional(),
  limits: strict("limits", {
    maxRequestBytes: whole(1, 2_147_483_647, "bytes").optional(),
    maxConcurrent: count.optional(),
    maxQueue: countOrZero.optional(),
    queueTimeoutMs: milliseconds.optional(),
  }).optional(),
  store: objectWith<HealthStore>(
    ["rest", "setRest", "holder", "setHolder"],
    "a health store: an object with the functions rest, setRest, holder and setHolder",
  ).optional(),
  observers: list(objectWith<Observer>(["onEvent"], "an object with an onEvent function"), "observers").optional(),
  logger: objectWith<Logger>(
    ["debug", "info", "warn", "error"],
    "an object with the functions debug, info, warn and error, such as a pino logger",
  ).optional(),
  dispatcher: objectWith<Dispatcher>(["dispatch"], "a dispatcher of undici").optional(),
});

/** The configuration as a copy, or undefined with the problems added. Functions and services are kept as they are. */
export function parseShape(config: unknown, problems: Problems): GatewayConfig | undefined {
  const found = protoPath(config, [], new Set());
  if (found !== undefined) {
    problems.add(found, "is not allowed as a name: choose another");
    return undefined;
  }
  const result = configSchema.safeParse(config);
  if (result.success) return result.data;
  for (const issue of result.error.issues) addIssue(issue, [], problems);
  return undefined;
}

function addIssue(issue: z.core.$ZodIssue, base: Path, problems: Problems): void {
  const path = [...base, ...issue.path];
  if (issue.code === "unrecognized_keys") {
    problems.add([...path, issue.keys[0] ?? ""], issue.message);
    return;
  }
  if (issue.code === "invalid_union") {
    // A branch that got further into the value is the one that was meant.
    const meant = issue.errors.find((branch) => branch.some((inner) => inner.path.length > 0));
    for (const inner of meant ?? []) addIssue(inner, path, problems);
    if (meant !== undefined) return;
  }
  problems.add(path, issue.message);
}

/** Where `__proto__` is a key, as JSON can make it: in a record it would be dropped without a word. */
function protoPath(value: unknown, path: Path, seen: Set<object>): Path | undefined {
  if (typeof value !== "object" || value === null || seen.has(value)) return undefined;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (!Array.isArray(value) && prototype !== Object.prototype && prototype !== null) return undefined;
  seen.add(value);
  for (const key of Object.keys(value)) {
    const inner = [...path, Array.isArray(value) ? Number(key) : key];
    if (key === "__proto__") return inner;
    const found = protoPath((value as Readonly<Record<string, unknown>>)[key], inner, seen);
    if (found !== undefined) return found;
  }
  return undefined;
}
