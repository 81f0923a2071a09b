import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LatencyMeans } from "../../src/health/latency.js";
import { behindCutoff, byLatency, type Measured } from "../../src/routing/latency-order.js";
import { byPriority } from "../../src/routing/order.js";
import { byWeight, shuffled } from "../../src/routing/weight.js";
import { ids, routedTargets } from "./targets.js";

const sequence =
  (...values: number[]): (() => number) =>
  () =>
    values.shift() ?? 0;

describe("priority", () => {
  it("puts the lower number first, ties in list order", () => {
    const targets = [
      { target: "a/x", priority: 1 },
      { target: "b/x" },
      { target: "c/x" },
      { target: "a/y", priority: 1 },
    ];
    expect(ids(byPriority(routedTargets({ targets })))).toEqual(["b/x", "c/x", "a/x", "a/y"]);
  });
});

describe("weight", () => {
  const targets = routedTargets({
    routing: "weight",
    targets: [
      { target: "a/x", weight: 60 },
      { target: "b/x", weight: 40 },
      { target: "c/x", weight: 0 },
    ],
  });

  it.each([
    [0, ["a/x", "b/x", "c/x"]],
    [0.599, ["a/x", "b/x", "c/x"]],
    [0.6, ["b/x", "a/x", "c/x"]],
    [0.999, ["b/x", "a/x", "c/x"]],
  ])("draws by the shares: %f", (drawn, order) => {
    expect(ids(byWeight(targets, sequence(drawn)))).toEqual(order);
  });

  it("draws the rest without putting any back", () => {
    fc.assert(
      fc.property(
        fc.array(fc.double({ min: 0, max: 0.999_999, noNaN: true }), { minLength: 3, maxLength: 3 }),
        (values) => {
          expect(ids(byWeight(targets, sequence(...values))).toSorted()).toEqual(["a/x", "b/x", "c/x"]);
        },
      ),
    );
  });

  it("shuffles to every order", () => {
    const orders = new Set<string>();
    for (const first of [0, 0.4, 0.7])
      for (const second of [0, 0.6]) orders.add(shuffled([1, 2, 3], sequence(first, second)).join(""));
    expect(orders.size).toBe(6);
  });
});

const nothing: LatencyMeans = { samples: 0, ttftMs: undefined, timePerOutputTokenMs: undefined };

function measured(facts: Record<string, { begun?: number } & Partial<LatencyMeans>>): Measured {
  const means = (target: string): LatencyMeans => ({ ...nothing, samples: 10, ...facts[target] });
  return { begun: (target) => facts[target]?.begun ?? 10, latency: means, recentLatency: means };
}

describe("latency", () => {
  const targets = routedTargets({
    routing: "latency",
    targets: [{ target: "a/x" }, { target: "b/x" }, { target: "c/x" }],
  });

  it("puts the fastest first", () => {
    const health = measured({
      "a/x": { timePerOutputTokenMs: 30 },
      "b/x": { timePerOutputTokenMs: 10 },
      "c/x": { timePerOutputTokenMs: 20 },
    });
    expect(ids(byLatency(targets, health, () => 0.5))).toEqual(["b/x", "c/x", "a/x"]);
  });

  it("chooses at random among those within 1.2 times the fastest", () => {
    const health = measured({
      "a/x": { timePerOutputTokenMs: 12 },
      "b/x": { timePerOutputTokenMs: 10 },
      "c/x": { timePerOutputTokenMs: 12.1 },
    });
    expect(ids(byLatency(targets, health, () => 0))).toEqual(["b/x", "a/x", "c/x"]);
    expect(ids(byLatency(targets, health, () => 0.9))).toEqual(["a/x", "b/x", "c/x"]);
  });

  it("prefers a target with fewer than 3 requests, and puts one that never answered last", () => {
    const health = measured({
      "a/x": { timePerOutputTokenMs: 10 },
      "b/x": { begun: 3, ...nothing },
      "c/x": { begun: 2, ...nothing },
    });
    expect(ids(byLatency(targets, health, () => 0))).toEqual(["c/x", "a/x", "b/x"]);
  });
});

describe("slaCutoff", () => {
  const targets = routedTargets({
    targets: [{ target: "a/x", slaCutoff: { timePerOutputTokenMs: 20, timeToFirstTokenMs: 1_000 } }, { target: "b/x" }],
  });

  it.each([
    ["above the time per token", { timePerOutputTokenMs: 21 }, ["b/x", "a/x"]],
    ["above the time to the first token", { ttftMs: 1_001 }, ["b/x", "a/x"]],
    ["at both", { timePerOutputTokenMs: 20, ttftMs: 1_000 }, ["a/x", "b/x"]],
    ["above with two samples", { samples: 2, ttftMs: 5_000 }, ["a/x", "b/x"]],
  ])("puts a target %s in its place", (_name, means, order) => {
    expect(ids(behindCutoff(targets, measured({ "a/x": means })))).toEqual(order);
  });
});
