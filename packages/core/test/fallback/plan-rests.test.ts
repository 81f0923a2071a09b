import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Failure } from "../../src/errors.js";
import { lastTargetRetries, Plan, type PlanOutput, type PlanTarget } from "../../src/fallback/plan.js";

function target(overrides: Partial<PlanTarget> = {}, attempts: number | undefined = 0): PlanTarget {
  const retry = { attempts, delayMs: 100, maxDelayMs: 8_000, onStatusCodes: [429, 500, 503] };
  return { retry, fallbackStatusCodes: [404, 429, "5xx"], fallbackCandidate: true, ...overrides };
}

const failed = (status: number, more: Partial<Failure> = {}): Failure => ({
  kind: "http",
  status,
  code: "c",
  message: "m",
  retryable: true,
  ...more,
});

/** The order in which the targets are tried when each fails. */
function order(targets: readonly PlanTarget[], backAt: readonly (readonly number[])[]): number[] {
  const plan = new Plan(targets, Infinity, () => 0.5);
  const tried: number[] = [];
  let step: PlanOutput = plan.step({ type: "start", now: 0, backAt: backAt[0] });
  while (step.type === "attempt") {
    tried.push(step.target);
    step = plan.step({ type: "rejected", failure: failed(404), now: 0, backAt: backAt[tried.length] ?? backAt[0] });
  }
  return tried;
}

describe("targets that rest", () => {
  const three = [target(), target(), target()];

  it("go to the end of the order, the soonest back first", () => {
    expect(order(three, [[900, 0, 500]])).toEqual([1, 2, 0]);
    expect(order(three, [[900, 700, 500]])).toEqual([2, 1, 0]);
    expect(order(three, [[0, 0, 0]])).toEqual([0, 1, 2]);
  });

  it("are told apart when the next target is chosen, not when the request began", () => {
    expect(
      order(three, [
        [0, 0, 0],
        [0, 900, 0],
        [0, 900, 0],
      ]),
    ).toEqual([0, 2, 1]);
    expect(
      order(three, [
        [900, 0, 0],
        [0, 0, 0],
        [0, 0, 0],
      ]),
    ).toEqual([1, 0, 2]);
  });

  it("keep their place among those that are back at the same time", () => {
    expect(order(three, [[500, 500, 500]])).toEqual([0, 1, 2]);
  });

  it("do not open the way to a target that is no fallback candidate", () => {
    const targets = [target(), target({ fallbackCandidate: false }), target()];
    expect(order(targets, [[900, 0, 0]])).toEqual([2, 0]);
  });

  it("and are no fallback candidates are tried first or not at all", () => {
    expect(order([target({ fallbackCandidate: false }), target()], [[900, 0]])).toEqual([1]);
    expect(order([target({ fallbackCandidate: false }), target()], [[500, 900]])).toEqual([0, 1]);
  });
});

describe("time that is kept for the next target", () => {
  it("takes no retry", () => {
    const plan = new Plan([target({}, 5), target()], 10_000, () => 0, [5_000, 5_000]);
    plan.step({ type: "start", now: 0 });
    expect(plan.step({ type: "rejected", failure: failed(503), now: 4_999 })).toMatchObject({
      type: "attempt",
      target: 0,
      retry: true,
    });
    expect(plan.step({ type: "rejected", failure: failed(503), now: 5_000 })).toMatchObject({
      type: "attempt",
      target: 1,
      retry: false,
    });
  });

  it("is not kept on the last target", () => {
    const plan = new Plan([target({}, 5)], 10_000, () => 0, [5_000]);
    plan.step({ type: "start", now: 0 });
    expect(plan.step({ type: "rejected", failure: failed(503), now: 9_000 })).toMatchObject({
      type: "attempt",
      retry: true,
    });
  });

  it("is not over for a target whose own deadline is later", () => {
    const plan = new Plan([target(), target(), target()], [1_000, 500, 2_000], () => 0);
    plan.step({ type: "start", now: 0 });
    expect(plan.step({ type: "rejected", failure: failed(503), now: 1_000 })).toMatchObject({
      type: "attempt",
      target: 2,
    });
  });
});

const statuses = [400, 404, 408, 429, 500, 501, 503];
const failures = fc.record({
  status: fc.constantFrom(...statuses),
  retryable: fc.boolean(),
  kind: fc.constantFrom("http", "network", "ttft-timeout", "total-timeout", "client-abort"),
  retryAfterMs: fc.option(fc.integer({ min: 0, max: 20_000 }), { nil: undefined }),
  alwaysFallBack: fc.boolean(),
  shouldNotRetry: fc.boolean(),
}) as fc.Arbitrary<Partial<Failure>>;

const targets = fc.array(
  fc.record({
    attempts: fc.option(fc.integer({ min: 0, max: 5 }), { nil: undefined }),
    candidate: fc.boolean(),
    deadline: fc.integer({ min: 1, max: 60_000 }),
  }),
  { minLength: 1, maxLength: 6 },
);
const outcomes = fc.array(
  fc.record({
    failure: failures,
    tookMs: fc.integer({ min: 0, max: 15_000 }),
    backAt: fc.array(fc.nat(3), { minLength: 6, maxLength: 6 }),
  }),
  {
    minLength: 60,
    maxLength: 60,
  },
);

describe("for any sequence of outcomes and rests", () => {
  it("the plan keeps its budgets, its candidates and its deadlines, and ends", () => {
    fc.assert(
      fc.property(targets, outcomes, fc.double({ min: 0, max: 0.999, noNaN: true }), (list, sequence, random) => {
        const plan = new Plan(
          list.map(({ attempts, candidate }) => target({ fallbackCandidate: candidate }, attempts)),
          list.map(({ deadline }) => deadline),
          () => random,
          list.map(() => 5_000),
        );
        const calls = list.map(() => 0);
        let now = 0;
        let left: number[] = [];
        let step = plan.step({ type: "start", now, backAt: sequence[0].backAt });
        let next = 0;
        while (step.type !== "give-up") {
          if (step.type === "wait") {
            expect(step.until).toBeGreaterThanOrEqual(now);
            now = step.until;
            step = plan.step({ type: "waited", now });
            continue;
          }
          const index = step.target;
          calls[index] += 1;
          if (calls.reduce((sum, count) => sum + count) > 1) expect(now).toBeLessThan(list[index].deadline);
          if (next > 0 && calls[index] === 1) expect(list[index].candidate).toBe(true);
          expect(step.retry).toBe(calls[index] > 1);
          // A target that was left is not come back to.
          expect(left).not.toContain(index);
          left = calls.flatMap((count, other) => (count > 0 && other !== index ? [other] : []));
          const { failure, tookMs, backAt } = sequence[next++];
          now += tookMs;
          step = plan.step({ type: "rejected", failure: { ...failed(503), ...failure }, now, backAt });
        }
        const bound = list.reduce((sum, { attempts }) => sum + 1 + (attempts ?? lastTargetRetries), 0);
        expect(calls.reduce((sum, count) => sum + count)).toBeLessThanOrEqual(bound);
        for (const [index, { attempts }] of list.entries())
          expect(calls[index]).toBeLessThanOrEqual(1 + (attempts ?? lastTargetRetries));
        // By default only the last target that is tried is tried again.
        const again = list.filter(({ attempts }, index) => attempts === undefined && calls[index] > 1).length;
        expect(again).toBeLessThanOrEqual(1);
      }),
      { numRuns: 2_000 },
    );
  });

  it("a target that may be tried comes before all that rest", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(3), { minLength: 1, maxLength: 6 }), (backAt) => {
        const tried = order(
          backAt.map(() => target()),
          [backAt],
        );
        const expected = [...backAt.keys()].toSorted((a, b) => backAt[a] - backAt[b] || a - b);
        expect(tried).toEqual(expected);
      }),
    );
  });
});
