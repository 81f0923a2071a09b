import { describe, expect, it } from "vitest";
import type { Failure } from "../../src/errors.js";
import { GuardedHealthStore } from "../../src/health/guarded-store.js";
import { Health } from "../../src/health/health.js";
import { MemoryHealthStore, type HealthStore } from "../../src/health/store.js";
import { ManualClock } from "../../src/testing/manual-clock.js";

const policy = { failures: 2, failureRatio: 0.1, windowMs: 120_000, durationMs: 30_000, maxDurationMs: 300_000 };

function health(cooldown: typeof policy | false = policy): { health: Health; clock: ManualClock; store: HealthStore } {
  const clock = new ManualClock();
  const store = new MemoryHealthStore();
  return {
    health: new Health({ cooldown, store, clock, epochOffset: 1_800_000_000_000, measures: true }),
    clock,
    store,
  };
}

function failure(kind: Failure["kind"], status: number, more: Partial<Failure> = {}): Failure {
  return { kind, status, code: "c", message: "m", retryable: true, ...more };
}

function twice(scene: ReturnType<typeof health>, failed: Failure): boolean {
  for (let index = 0; index < 2; index += 1) scene.health.begin("a/x").failed(failed);
  return scene.health.backAt(["a/x"])[0] !== 0;
}

describe("a failure", () => {
  it.each([
    ["network", 502],
    ["request-timeout", 408],
    ["idle-timeout", 504],
    ["connect-timeout", 504],
    ["http", 401],
    ["http", 403],
    ["http", 408],
    ["http", 424],
    ["http", 429],
    ["in-band", 503],
    ["empty-stream", 502],
    ["truncated-stream", 502],
    ["unexplained", 502],
    ["invalid-body", 502],
  ] as const)("of kind %s with %i rests the target", (kind, status) => {
    expect(twice(health(), failure(kind, status))).toBe(true);
  });

  it.each([
    ["ttft-timeout", 408],
    ["total-timeout", 408],
    ["empty-completion", 502],
    ["client-abort", 499],
    ["write-stall", 499],
    ["http", 400],
    ["http", 402],
    ["http", 404],
    ["http", 409],
    ["http", 413],
    ["http", 422],
    ["http", 501],
  ] as const)("of kind %s with %i does not", (kind, status) => {
    expect(twice(health(), failure(kind, status))).toBe(false);
  });

  it("for policy does not", () => {
    expect(twice(health(), failure("http", 403, { policy: true }))).toBe(false);
  });

  it("sets the length by `Retry-After` with 429 and 503 only", () => {
    for (const [status, length] of [
      [429, 7_000],
      [503, 7_000],
      [500, 30_000],
    ]) {
      const scene = health();
      twice(scene, failure("http", status, { retryAfterMs: 7_000 }));
      expect(scene.health.backAt(["a/x"])[0]).toBe(scene.health.now() + length);
    }
  });

  it("rests that model of the provider alone", () => {
    const scene = health();
    twice(scene, failure("http", 503));
    expect(scene.health.backAt(["a/x", "a/y", "b/x"]).map((back) => back > 0)).toEqual([true, false, false]);
  });

  it("rests nothing with `cooldown: false`", () => {
    expect(twice(health(false), failure("http", 503))).toBe(false);
  });
});

describe("a store that throws", () => {
  const broken = new Proxy({} as HealthStore, {
    get: () => () => {
      throw new Error("no connection");
    },
  });

  it("answers as if nothing were known, and is told of once, however often it is asked", () => {
    const told: unknown[] = [];
    const store = new GuardedHealthStore(broken, (error) => told.push(error));
    expect([store.rest("a/x"), store.holder("r")]).toEqual([undefined, undefined]);
    store.setRest("a/x", undefined);
    store.setHolder("r", "a/x");
    for (let index = 0; index < 100; index += 1) store.rest("a/x");
    expect(told).toHaveLength(4);
  });
});

describe("the store in memory", () => {
  it("keeps a bounded number of ids, the latest", () => {
    const store = new MemoryHealthStore();
    for (let index = 0; index < 100_001; index += 1) store.setHolder(`r${index}`, "a/x");
    expect([store.holder("r0"), store.holder("r100000")]).toEqual([undefined, "a/x"]);
  });
});
