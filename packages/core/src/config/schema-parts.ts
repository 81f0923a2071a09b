/** Building blocks of the schema, each with a message that says what would be right. */

import { z } from "zod";

import { maxTimerMs } from "../clock.js";
import { listNames, quote, suggestion } from "./problems.js";

/** The value as it may stand in a message. Not for fields that hold a secret. */
function show(value: unknown): string {
  if (typeof value === "string") return quote(value);
  if (typeof value === "number" || typeof value === "boolean" || value === null) return String(value);
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** `is required: …` where the value is missing, else `must be …, not x`. */
function mustBe(what: string): (issue: { readonly input?: unknown }) => string {
  return ({ input }) => (input === undefined ? `is required: ${what}` : `must be ${what}, not ${show(input)}`);
}

export function whole(min: number, max: number, unit = ""): z.ZodType<number> {
  const error = mustBe(`a whole number${unit === "" ? "" : ` of ${unit}`} from ${min} to ${max}`);
  return z.int({ error }).min(min, { error }).max(max, { error });
}

/** A length of time from 1 ms on. */
export const milliseconds: z.ZodType<number> = whole(1, maxTimerMs, "ms");

/** A length of time, 0 included. */
export const millisecondsOrZero: z.ZodType<number> = whole(0, maxTimerMs, "ms");

/** A count from 1 on. */
export const count: z.ZodType<number> = whole(1, maxTimerMs);

/** A count, 0 included. */
export const countOrZero: z.ZodType<number> = whole(0, maxTimerMs);

/** Above 0, up to `max`, fractions too. */
export function fraction(max: number): z.ZodType<number> {
  const error = mustBe(`a number above 0, at most ${max}`);
  return z.number({ error }).gt(0, { error }).max(max, { error });
}

export const flag: z.ZodType<boolean> = z.boolean({ error: mustBe("true or false") });

/** A string of 1 to `max` characters. */
export function text(what: string, max: number = Number.MAX_SAFE_INTEGER): z.ZodType<string> {
  const error = mustBe(what);
  return z
    .string({ error })
    .min(1, { error })
    .max(max, { error: `must have at most ${max} characters` });
}

/** A string that never stands in a message. */
export function hiddenText(what: string): z.ZodType<string> {
  return z.string({ error: `must be ${what}; the value is not shown here` });
}

export function choice<const Name extends string>(names: readonly Name[]): z.ZodType<Name> {
  const error = mustBe(listNames(names));
  return z.enum(names, {
    error: (issue) => error(issue) + (typeof issue.input === "string" ? `.${suggestion(issue.input, names)}` : ""),
  });
}

export function list<Item>(item: z.ZodType<Item>, what: string): z.ZodType<Item[]> {
  return z.array(item, { error: mustBe(`an array of ${what}`) });
}

export function listOfSome<Item>(item: z.ZodType<Item>, what: string): z.ZodType<Item[]> {
  const error = mustBe(`an array of ${what}`);
  return z.array(item, { error }).min(1, { error: `must not be empty: list at least one of the ${what}` });
}

export function record<Value>(value: z.ZodType<Value>, what: string): z.ZodType<Record<string, Value>> {
  return z.record(z.string(), value, {
    error: ({ input }) => (input === undefined ? `is required: ${what}` : `must be a plain object: ${what}`),
  });
}

/** An object in which every key is known. */
export function strict<Shape extends z.core.$ZodLooseShape>(
  what: string,
  shape: Shape,
): z.ZodObject<Shape, z.core.$strict> {
  const known = Object.keys(shape);
  return z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== "unrecognized_keys") return mustBe(`an object: ${what}`)(issue);
      // The problem is reported at the path of the first of these keys.
      const [first = "", ...others] = (issue as unknown as { readonly keys: readonly string[] }).keys;
      const near = suggestion(first, known);
      const also = others.length === 0 ? "" : ` Not known either: ${listNames(others, "and")}.`;
      return `is not a known key of ${what}.${near === "" ? ` Known are ${listNames(known, "and")}.` : near}${also}`;
    },
  });
}

export function functionOf<Value>(what: string): z.ZodType<Value> {
  return z.custom<Value>((value) => typeof value === "function", { error: `must be ${what}` });
}

/** An object that is kept as it is, told by its methods. */
export function objectWith<Value>(methods: readonly string[], what: string): z.ZodType<Value> {
  const hasMethods = (value: unknown): boolean =>
    (typeof value === "object" || typeof value === "function") &&
    value !== null &&
    methods.every((name) => typeof (value as Readonly<Record<string, unknown>>)[name] === "function");
  return z.custom<Value>(hasMethods, { error: `must be ${what}` });
}
