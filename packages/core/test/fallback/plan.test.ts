import { describe, expect, it } from "vitest";
import { Plan } from "../../src/fallback/plan.js";
import * as failures from "../../src/gate/failures.js";
import { fellBack, gaveUp, http, retried, Started, target } from "./plan-steps.js";

describe("the first attempt", () => {
  it("is at the first target, also where that is no candidate for a fallback", () => {
    const plan = new Plan([target({ fallbackCandidate: false }), target()], Infinity, () => 0);
    expect(plan.step({ type: "start", now: 0 })).toEqual({
      type: "attempt",
      target: 0,
      retry: false,
      anotherTarget: true,
    });
  });

  it.each([
    [[target()], false],
    [[target(), target({ fallbackCandidate: false })], false],
    [[target(), target({ fallbackCandidate: false }), target()], true],
  ])("tells whether another may follow (%#)", (targets, anotherTarget) => {
    expect(new Plan(targets, Infinity, () => 0).step({ type: "start", now: 0 })).toMatchObject({ anotherTarget });
  });
});

describe("retries", () => {
  it("by default: none while another target remains, two on the last", () => {
    const plan = new Started([target(), target()]);
    expect(plan.next(http(500))).toMatchObject({ target: 1, retry: false });
    expect(plan.next(http(500))).toMatchObject({ target: 1, retry: true });
    expect(plan.next(http(500))).toMatchObject({ target: 1, retry: true });
    expect(plan.next(http(500))).toMatchObject(gaveUp);
  });

  it("a target that is followed only by one that is no candidate is the last", () => {
    expect(new Started([target(), target({ fallbackCandidate: false })]).next(http(500))).toMatchObject(retried);
  });

  it("a budget of its own is spent before the next target is tried", () => {
    const plan = new Started([target({ attempts: 1 }), target()]);
    expect(plan.next(http(500))).toMatchObject(retried);
    expect(plan.next(http(500))).toMatchObject(fellBack);
  });

  it("a budget of 0 on the last target means none", () => {
    expect(new Started([target({ attempts: 0 })]).next(http(500))).toMatchObject(gaveUp);
  });

  it.each([429, 500, 502, 503, 504])("%i is retried by default", (status) => {
    expect(new Started([target()]).next(http(status))).toMatchObject(retried);
  });

  it.each([400, 401, 403, 404, 408, 409, 413, 422, 424, 501])("%i is not retried by default", (status) => {
    expect(new Started([target()]).next(http(status))).toMatchObject(gaveUp);
  });

  it("a listed status of a class that cannot pass is not retried", () => {
    expect(new Started([target()]).next(http(429, { retryable: false }))).toMatchObject(gaveUp);
    expect(new Started([target({ onStatusCodes: ["4xx"] })]).next(http(400))).toMatchObject(gaveUp);
  });

  it("`x-should-retry: false` forbids it, also for a network error", () => {
    expect(new Started([target()]).next(http(500, { shouldNotRetry: true }))).toMatchObject(gaveUp);
    expect(
      new Started([target()]).next({ ...failures.networkFailure(undefined, true), shouldNotRetry: true }),
    ).toMatchObject(gaveUp);
  });

  it("a network error needs no listed status", () => {
    const plan = [target({ onStatusCodes: [] })];
    expect(new Started(plan).next(failures.networkFailure(undefined, false))).toMatchObject(retried);
    expect(new Started(plan).next(failures.connectTimeout(5000))).toMatchObject(retried);
    expect(new Started(plan).next(failures.idleTimeout(5000))).toMatchObject(gaveUp);
  });

  it("a 529 in the list matches what was a 529, and no other 503", () => {
    const only529 = [target({ onStatusCodes: [529] })];
    expect(new Started(only529).next(http(503, { originalStatus: 529 }))).toMatchObject(retried);
    expect(new Started(only529).next(http(503))).toMatchObject(gaveUp);
    expect(new Started([target({ onStatusCodes: [503] })]).next(http(503, { originalStatus: 529 }))).toMatchObject(
      retried,
    );
  });

  it("never follow a failure that always moves on", () => {
    const plan = new Started([target({ attempts: 5, onStatusCodes: ["4xx", "5xx"] })]);
    expect(plan.next(failures.ttftTimeout(100))).toMatchObject(gaveUp);
  });

  it("wait a random part of a delay that doubles up to its limit", () => {
    const plan = new Started([target({ attempts: 10, delayMs: 100, maxDelayMs: 450 })]);
    const delays = [1, 2, 3, 4, 5].map(() => {
      const output = plan.reject(http(500));
      plan.now = output.type === "wait" ? output.until : Number.NaN;
      plan.plan.step({ type: "waited", now: plan.now });
      return plan.now;
    });
    expect(delays.map((at, index) => at - (delays[index - 1] ?? 1000))).toEqual([50, 100, 200, 225, 225]);
  });

  it("of no delay are made at once", () => {
    expect(new Started([target({ delayMs: 0 })]).reject(http(500))).toMatchObject(retried);
  });
});

describe("Retry-After", () => {
  it("sets the delay of a retry, without jitter", () => {
    expect(new Started([target()]).reject(http(429, { retryAfterMs: 1500 }))).toEqual({ type: "wait", until: 2500 });
    expect(new Started([target()]).reject(http(429, { retryAfterMs: 8000 }))).toEqual({ type: "wait", until: 9000 });
    expect(new Started([target()]).reject(http(429, { retryAfterMs: 0 }))).toMatchObject(retried);
  });

  it("longer than the longest delay means no retry, but a fallback", () => {
    const late = http(429, { retryAfterMs: 8001 });
    expect(new Started([target({ attempts: 3 })]).reject(late)).toMatchObject(gaveUp);
    expect(new Started([target({ attempts: 3 }), target()]).reject(late)).toMatchObject(fellBack);
  });

  it("is the shortest of all targets in the end", () => {
    const plan = new Started([target(), target(), target({ attempts: 0 })]);
    plan.next(http(429, { retryAfterMs: 60_000 }));
    plan.next(http(503, { retryAfterMs: 20_000 }));
    expect(plan.next(http(429, { retryAfterMs: 90_000 }))).toMatchObject({
      failure: { message: "429", retryAfterMs: 20_000 },
    });
  });

  it("is not added to a failure that has no use for it", () => {
    const plan = new Started([target(), target({ attempts: 0 })]);
    plan.next(http(429, { retryAfterMs: 60_000 }));
    expect(plan.next(http(500))).not.toHaveProperty("failure.retryAfterMs");
  });
});

describe("a plan that is misused", () => {
  it("throws", () => {
    const plan = new Plan([target()], Infinity, () => 0);
    expect(() => plan.step({ type: "waited", now: 0 })).toThrow("not waiting");
    expect(() => plan.step({ type: "rejected", failure: http(500), now: 0 })).toThrow("no attempt");
    plan.step({ type: "start", now: 0 });
    expect(() => plan.step({ type: "start", now: 0 })).toThrow("once");
  });
});
