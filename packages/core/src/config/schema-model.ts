/** The shape of virtual models, targets and rules. How they refer to each other is checked in resolve-model.ts. */

import { z } from "zod";

import type { RetryConfig, Routing, RoutingRule, TargetConfig, Timeouts, VirtualModelConfig } from "./model-config.js";
import type { StatusCode } from "./status-code.js";
import {
  choice,
  countOrZero,
  flag,
  fraction,
  hiddenText,
  list,
  listOfSome,
  milliseconds,
  millisecondsOrZero,
  record,
  strict,
  text,
  whole,
} from "./schema-parts.js";

const clocks = {
  ttftTimeoutMs: milliseconds.optional(),
  requestTimeoutMs: milliseconds.optional(),
  idleTimeoutMs: milliseconds.optional(),
  connectTimeoutMs: milliseconds.optional(),
  totalTimeoutMs: milliseconds.optional(),
  writeStallTimeoutMs: milliseconds.optional(),
  lastTargetTtft: choice(["enforce", "exempt"]).optional(),
  minAttemptMs: millisecondsOrZero.optional(),
};

export const timeoutsSchema: z.ZodType<Timeouts> = strict("timeouts", clocks);

const statusCode: z.ZodType<StatusCode> = z.custom<StatusCode>(
  (value) =>
    value === "4xx" || value === "5xx" || (Number.isInteger(value) && Number(value) >= 400 && Number(value) <= 599),
  { error: 'must be a number from 400 to 599, "4xx" or "5xx"' },
);

export const statusCodesSchema: z.ZodType<StatusCode[]> = list(statusCode, "status codes");

export const retrySchema: z.ZodType<RetryConfig> = strict("retry", {
  attempts: whole(0, 10).optional(),
  delayMs: millisecondsOrZero.optional(),
  maxDelayMs: millisecondsOrZero.optional(),
  onStatusCodes: statusCodesSchema.optional(),
});

const routing = choice<Routing>(["priority", "weight", "latency"]);

// No request can carry more: values of `x-tfy-metadata` have at most 128 characters.
const shortText: z.ZodType<string> = z
  .string({ error: "must be a string" })
  .max(128, { error: "must have at most 128 characters" });

const metadata = record(shortText, "metadata keys with strings");

const targetSchema: z.ZodType<TargetConfig> = strict("a target", {
  target: text('"provider/model"'),
  weight: whole(0, 100, "percent").optional(),
  priority: countOrZero.optional(),
  retry: retrySchema.optional(),
  fallbackStatusCodes: statusCodesSchema.optional(),
  fallbackCandidate: flag.optional(),
  overrideParams: record(z.unknown(), "body keys with JSON values").optional(),
  dropParams: list(text("a body key"), "body keys").optional(),
  headersOverride: strict("headersOverride", {
    set: record(hiddenText("a string"), "header names with their values").optional(),
    remove: list(text("a header name"), "header names").optional(),
  }).optional(),
  metadataMatch: metadata.optional(),
  slaCutoff: strict("slaCutoff", {
    timePerOutputTokenMs: fraction(2_147_483_647).optional(),
    timeToFirstTokenMs: milliseconds.optional(),
  }).optional(),
  timeouts: timeoutsSchema.optional(),
  ...clocks,
});

export const modelSchema: z.ZodType<VirtualModelConfig> = strict("a virtual model", {
  routing: routing.optional(),
  targets: listOfSome(targetSchema, "targets"),
  sticky: strict("sticky", {
    // So that it fits a timer once it is in ms.
    ttlSeconds: whole(1, 2_147_483, "seconds"),
    sessionIdentifiers: listOfSome(
      strict("a session identifier", {
        source: choice(["headers", "metadata", "body"]),
        key: text("a header name, a metadata key or a path in the body"),
      }),
      "session identifiers",
    ),
  }).optional(),
  retry: retrySchema.optional(),
  fallbackStatusCodes: statusCodesSchema.optional(),
  timeouts: timeoutsSchema.optional(),
  ...clocks,
});

export const ruleSchema: z.ZodType<RoutingRule> = strict("a rule", {
  id: text("a name for the rule"),
  when: strict("when", {
    subjects: listOfSome(text("a subject"), "subjects").optional(),
    models: listOfSome(text("a model name"), "model names").optional(),
    metadata: metadata.optional(),
  }),
  routing: routing.optional(),
  targets: listOfSome(targetSchema, "targets"),
});
