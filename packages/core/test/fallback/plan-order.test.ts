import { describe, expect, it } from "vitest";
import type { StatusCode } from "../../src/config/status-code.js";
import type { Failure } from "../../src/errors.js";
import { Plan, type PlanOutput, type PlanTarget } from "../../src/fallback/plan.js";
import * as failures from "../../src/gate/failures.js";
import { fellBack, gaveUp, http, retried, Started, target } from "./plan-steps.js";

describe("fallback", () => {
  it.each([401, 402, 403, 404, 408, 424, 429, 500, 501, 502, 503, 504, 599])("%i moves on by default", (status) => {
    expect(new Started([target(), target()]).next(http(status, { retryable: false }))).toMatchObject(fellBack);
  });

  it.each([400, 405, 409, 413, 416, 418, 422, 499])("%i does not", (status) => {
    expect(new Started([target(), target()]).next(http(status))).toMatchObject(gaveUp);
  });

  it("goes by the list of the target that failed", () => {
    const own = [target({ fallbackStatusCodes: [418] }), target()];
    expect(new Started(own).next(http(418))).toMatchObject(fellBack);
    expect(new Started(own).next(http(500))).toMatchObject(gaveUp);
  });

  it("a 529 in the list matches what was a 529", () => {
    const own = [target({ fallbackStatusCodes: [529] }), target()];
    expect(new Started(own).next(http(503, { originalStatus: 529 }))).toMatchObject(fellBack);
    expect(new Started(own).next(http(503))).toMatchObject(gaveUp);
  });

  it.each([
    failures.networkFailure(undefined, false),
    failures.networkFailure(undefined, true),
    failures.connectTimeout(5000),
    failures.ttftTimeout(100),
    failures.ttftEmptyStream(100),
    failures.emptyCompletion({ alwaysFallBack: true }),
  ])("follows $code whatever the list says", (failure) => {
    expect(new Started([target({ fallbackStatusCodes: [] }), target()]).next(failure)).toMatchObject(fellBack);
  });

  it("passes over targets that are no candidates", () => {
    expect(new Started([target(), target({ fallbackCandidate: false }), target()]).next(http(500))).toMatchObject({
      target: 2,
    });
  });

  it.each([failures.clientAbort(), failures.totalTimeout(10), failures.shutdown(), failures.internal(undefined)])(
    "never follows $kind",
    (failure) => {
      const all: readonly StatusCode[] = ["4xx", "5xx"];
      const plan = new Started([target({ attempts: 3, onStatusCodes: all, fallbackStatusCodes: all }), target()]);
      expect(plan.next({ ...failure, retryable: true })).toMatchObject({
        type: "give-up",
        failure: { kind: failure.kind },
      });
    },
  );
});

describe("the last moment to start", () => {
  it("ends the plan: at it neither a retry nor a fallback begins", () => {
    const plan = new Started([target(), target()], 2000);
    plan.now = 2000;
    expect(plan.reject(http(500))).toMatchObject(gaveUp);
  });

  it("a retry that would begin then is left out for a fallback", () => {
    const plan = new Started([target({ attempts: 2 }), target()], 1050);
    expect(plan.reject(http(500))).toMatchObject(fellBack);
  });

  it("is kept by a wait that ends late", () => {
    const plan = new Started([target(), target()], 3000);
    plan.next(http(500));
    expect(plan.reject(http(503))).toMatchObject({ type: "wait" });
    expect(plan.plan.step({ type: "waited", now: 3000 })).toMatchObject({ type: "give-up", failure: { status: 503 } });
  });
});

describe("targets that rest", () => {
  const start = (targets: readonly PlanTarget[], backAt: readonly number[]): Plan => {
    const plan = new Plan(targets, Infinity, () => 0);
    plan.step({ type: "start", now: 0, backAt });
    return plan;
  };
  const first = (backAt: readonly number[], targets = backAt.map(() => target())): PlanOutput =>
    new Plan(targets, Infinity, () => 0).step({ type: "start", now: 0, backAt });
  const after = (plan: Plan, backAt?: readonly number[]): PlanOutput =>
    plan.step({ type: "rejected", failure: http(501), now: 1, backAt });

  it("come after those that do not", () => {
    expect(first([5, 0, 0])).toMatchObject({ target: 1, anotherTarget: true });
    expect(after(start([target(), target(), target()], [5, 0, 0]), [5, 0, 0])).toMatchObject({ target: 2 });
    expect(first([0, 5])).toMatchObject({ target: 0, anotherTarget: true });
  });

  it("are tried where all rest, the soonest back first", () => {
    expect(first([9, 5, 7])).toMatchObject({ target: 1 });
    expect(after(start([target(), target(), target()], [9, 5, 7]), [9, 5, 7])).toMatchObject({ target: 2 });
  });

  it("are looked at anew for every fallback", () => {
    expect(after(start([target(), target(), target()], [0, 0, 0]), [0, 5, 0])).toMatchObject({ target: 2 });
    expect(after(start([target(), target(), target()], [5, 0, 0]), [0, 0, 0])).toMatchObject({ target: 0 });
  });

  it("are never fallen back to where they are no candidates", () => {
    const only = target({ fallbackCandidate: false });
    expect(first([5, 0], [only, target()])).toMatchObject({ target: 1, anotherTarget: false });
    expect(after(start([only, target()], [5, 0]))).toMatchObject(gaveUp);
    expect(first([5, 0], [target(), only])).toMatchObject({ target: 0 });
    expect(first([5], [only])).toMatchObject({ target: 0 });
  });

  it("do not keep a retry from its own target", () => {
    const plan = start([target({ attempts: 1, delayMs: 0 }), target()], [0, 0]);
    expect(plan.step({ type: "rejected", failure: http(500), now: 1, backAt: [9, 0] })).toMatchObject(retried);
  });
});

describe("time that is kept for the next target", () => {
  const two = [
    target({ attempts: 5, delayMs: 200, maxDelayMs: 200 }),
    target({ attempts: 5, delayMs: 200, maxDelayMs: 200 }),
  ];
  const at = (now: number, reserves: readonly number[] = [500, 500]): Plan => {
    const plan = new Plan(two, [1000, 1000], () => 0.5, reserves);
    plan.step({ type: "start", now: 0 });
    expect(now).toBeLessThan(1000);
    return plan;
  };

  it("is not taken by a retry", () => {
    expect(at(399).step({ type: "rejected", failure: http(500), now: 399 })).toMatchObject({ type: "wait" });
    expect(at(400).step({ type: "rejected", failure: http(500), now: 400 })).toMatchObject(fellBack);
  });

  it("is there for the retries of the last target", () => {
    const plan = at(400);
    plan.step({ type: "rejected", failure: http(500), now: 400 });
    expect(plan.step({ type: "rejected", failure: http(500), now: 899 })).toMatchObject({ type: "wait", until: 999 });
  });

  it("is a target's own: one whose time is over is passed over", () => {
    const plan = new Plan([target(), target(), target()], [1000, 100, 1000], () => 0);
    plan.step({ type: "start", now: 0 });
    expect(plan.step({ type: "rejected", failure: http(500), now: 200 })).toMatchObject({ target: 2 });
  });
});

describe("the failure that is answered", () => {
  /** One failure a target. */
  function answered(...all: readonly Failure[]): PlanOutput {
    const codes: readonly StatusCode[] = ["4xx", "5xx"];
    const plan = new Started(all.map(() => target({ attempts: 0, fallbackStatusCodes: codes })));
    return all.map((failure) => plan.next(failure)).at(-1) as PlanOutput;
  }

  it("is the last", () => {
    expect(answered(http(500), http(503))).toMatchObject({ rejection: 1, failure: { status: 503 } });
    expect(answered(http(401), http(429))).toMatchObject({ rejection: 1 });
    expect(answered(http(503), http(409))).toMatchObject({ rejection: 1 });
    expect(answered(http(503), http(501))).toMatchObject({ rejection: 1 });
  });

  it.each([400, 401, 402, 403, 404, 413, 422])(
    "is an earlier one that may pass, where the last is a %i of a fallback",
    (status) => {
      expect(answered(http(429), http(status))).toMatchObject({ rejection: 0, failure: { status: 429 } });
      expect(answered(http(400), http(status))).toMatchObject({ rejection: 1, failure: { status } });
      expect(answered(http(429), http(503), http(status))).toMatchObject({ rejection: 1, failure: { status: 503 } });
    },
  );

  it("is that of the first target, where it was not fallen back to", () => {
    expect(answered(http(400))).toMatchObject({ rejection: 0, failure: { status: 400 } });
  });

  it("is a 400 of a retry, which is no fallback", () => {
    const plan = new Started([target({ attempts: 1 })]);
    plan.next(http(500));
    expect(plan.next(http(400))).toMatchObject({ rejection: 1, failure: { status: 400 } });
  });

  it("is the credential failure where nothing earlier may pass", () => {
    expect(answered(http(404), http(401))).toMatchObject({ rejection: 1, failure: { status: 401 } });
  });
});
