import { describe, expect, it } from "vitest";
import { fail, figure, ok, percent, Simulation } from "./simulation.js";

const targets = [
  { target: "a/x", weight: 60 },
  { target: "b/x", weight: 30 },
  { target: "c/x", weight: 10 },
];
const models = { m: { routing: "weight", targets } } as const;

describe("weight routing over 100,000 requests", () => {
  it("gives each target its share within 1 %", () => {
    const healthy = { "a/x": () => ok(), "b/x": () => ok(), "c/x": () => ok() };
    const shares = new Simulation({ models }, healthy, 1).steady(100_000, 10).run().shares();
    figure(`weights 60/30/10 gave ${percent(shares["a/x"])}, ${percent(shares["b/x"])}, ${percent(shares["c/x"])}`);
    for (const { target, weight } of targets) expect(Math.abs((shares[target] ?? 0) - weight / 100)).toBeLessThan(0.01);
  });

  it("divides the share of a target that rests by the weights of the others", () => {
    const behaviours = { "a/x": () => fail(503, 5, 300_000), "b/x": () => ok(), "c/x": () => ok() };
    const simulation = new Simulation({ models }, behaviours, 2).steady(100_000, 10).run();
    const shares = simulation.shares();
    const asked = simulation.sent.filter(({ target }) => target === "a/x").length;
    figure(
      `while a rests, b and c got ${percent(shares["b/x"])} and ${percent(shares["c/x"])}; a was asked ${asked} times`,
    );
    expect(Math.abs((shares["b/x"] ?? 0) - 0.75)).toBeLessThan(0.01);
    expect(asked).toBeLessThan(10);
    expect(simulation.finished.every(({ target }) => target !== undefined)).toBe(true);
  });
});
