import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { StatusCode } from "../../src/config/status-code.js";
import type { Failure, FailureKind } from "../../src/errors.js";
import { Plan, type PlanTarget } from "../../src/fallback/plan.js";

function http(status: number, own: Partial<Failure> = {}): Failure {
  const retryable = [408, 424, 429].includes(status) || (status >= 500 && status !== 501);
  return { kind: "http", status, code: `code_${status}`, message: `${status}`, retryable, ...own };
}

const kinds: readonly FailureKind[] = [
  "http",
  "in-band",
  "network",
  "connect-timeout",
  "idle-timeout",
  "ttft-timeout",
  "empty-completion",
  "total-timeout",
];
const anyStatus = fc.constantFrom(400, 401, 403, 404, 408, 422, 429, 500, 501, 502, 503, 504);
const anyFailure: fc.Arbitrary<Failure> = fc.record({
  kind: fc.constantFrom(...kinds),
  status: anyStatus,
  code: fc.constant("code"),
  message: fc.constant("message"),
  retryable: fc.boolean(),
  alwaysFallBack: fc.option(fc.boolean(), { nil: undefined }),
  shouldNotRetry: fc.option(fc.boolean(), { nil: undefined }),
  retryAfterMs: fc.option(fc.nat(20_000), { nil: undefined }),
});
const anyCodes: fc.Arbitrary<readonly StatusCode[]> = fc.array(
  fc.oneof(anyStatus, fc.constantFrom<StatusCode[]>("4xx", "5xx")),
  { maxLength: 5 },
);
const anyTarget: fc.Arbitrary<PlanTarget> = fc.record({
  retry: fc.record({
    attempts: fc.option(fc.nat(3), { nil: undefined }),
    delayMs: fc.nat(500),
    maxDelayMs: fc.integer({ min: 500, max: 9000 }),
    onStatusCodes: anyCodes,
  }),
  fallbackStatusCodes: anyCodes,
  fallbackCandidate: fc.boolean(),
});

describe("any plan", () => {
  it("stays within its budgets and its time, only goes forward, and ends", () => {
    const property = fc.property(
      fc.array(anyTarget, { minLength: 1, maxLength: 5 }),
      fc.infiniteStream(fc.tuple(anyFailure, fc.nat(3000), fc.nat(50))),
      fc.oneof(fc.constant(Infinity), fc.integer({ min: 1, max: 20_000 })),
      fc.infiniteStream(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })),
      (targets, outcomes, lastStart, random) => {
        const plan = new Plan(targets, lastStart, () => random.next().value);
        const tries = targets.map(() => 0);
        const rejected: Failure[] = [];
        let now = 0;
        let at = 0;
        let output = plan.step({ type: "start", now });
        while (output.type !== "give-up") {
          if (output.type === "attempt") {
            expect(now === 0 || now < lastStart).toBe(true);
            expect(output.target).toBeGreaterThanOrEqual(at);
            if (output.target !== 0) expect(targets[output.target].fallbackCandidate).toBe(true);
            expect(output.retry).toBe(tries[output.target] > 0);
            at = output.target;
            tries[at] += 1;
            const another = targets.slice(at + 1).some((candidate) => candidate.fallbackCandidate);
            expect(output.anotherTarget).toBe(another);
            expect(tries[at]).toBeLessThanOrEqual(1 + (targets[at].retry.attempts ?? (another ? 0 : 2)));
            const [failure, duration] = outcomes.next().value;
            rejected.push(failure);
            now += duration;
            output = plan.step({ type: "rejected", failure, now });
          } else {
            expect(output.until).toBeGreaterThanOrEqual(now);
            expect(output.until - now).toBeLessThanOrEqual(targets[at].retry.maxDelayMs);
            expect(output.until).toBeLessThan(lastStart);
            now = output.until + outcomes.next().value[2];
            output = plan.step({ type: "waited", now });
          }
        }
        expect(output.failure.status).toBe(rejected[output.rejection].status);
        expect(() => plan.step({ type: "rejected", failure: http(500), now })).toThrow("no attempt");
      },
    );
    fc.assert(property, { numRuns: 500 });
  });
});
