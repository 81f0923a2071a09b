import { describe, expect, it } from "vitest";
import { figure, ok, percent, Simulation, type Answer } from "./simulation.js";

const minute = 60_000;
const models = {
  m: { routing: "latency", targets: [{ target: "a/x" }, { target: "b/x" }, { target: "c/x" }] },
} as const;

/** About `tokenMs` a token. */
const paced = (tokenMs: number, random: () => number): Answer => ok(300, tokenMs * (0.8 + 0.4 * random()), 50);

describe("latency routing over 100,000 requests", () => {
  it("converges on the fast target, leaves it when it slows, and comes back when it is fast again", () => {
    const slowFrom = 30 * minute;
    const slowUntil = 50 * minute;
    const behaviours = {
      "a/x": (now: number, random: () => number) => paced(now >= slowFrom && now < slowUntil ? 200 : 20, random),
      "b/x": (_now: number, random: () => number) => paced(40, random),
      "c/x": (_now: number, random: () => number) => paced(60, random),
    };
    const simulation = new Simulation({ models }, behaviours, 3).steady(100_000, 72).run();
    const fast = simulation.shares(minute, slowFrom)["a/x"] ?? 0;
    const left = simulation.sent.findLast(({ at, target }) => target === "a/x" && at < slowFrom + 10 * minute)?.at ?? 0;
    const during = simulation.shares(left + 1, slowFrom + 20 * minute);
    const back = simulation.shares(slowUntil + 25 * minute)["a/x"] ?? 0;
    figure(
      `the fast target had ${percent(fast)}; ${((left - slowFrom) / minute).toFixed(1)} min after it slowed it had ${percent(during["a/x"])}, the second ${percent(during["b/x"])}; fast again ${percent(back)}`,
    );
    expect(fast).toBeGreaterThan(0.99);
    expect((left - slowFrom) / minute).toBeLessThan(5);
    expect(during["b/x"]).toBeGreaterThan(0.99);
    expect(back).toBeGreaterThan(0.99);
  });

  it("shares the requests among targets within 1.2 times the fastest", () => {
    const behaviours = { "a/x": () => ok(300, 20, 50), "b/x": () => ok(300, 23, 50), "c/x": () => ok(300, 26, 50) };
    const shares = new Simulation({ models }, behaviours, 4).steady(100_000, 50).run().shares();
    figure(
      `targets with 20, 23 and 26 ms a token had ${percent(shares["a/x"])}, ${percent(shares["b/x"])}, ${percent(shares["c/x"])}`,
    );
    expect(Math.abs((shares["a/x"] ?? 0) - 0.5)).toBeLessThan(0.01);
    expect(Math.abs((shares["b/x"] ?? 0) - 0.5)).toBeLessThan(0.01);
  });

  it("sends a target nothing more while its first three requests are under way, once another is measured", () => {
    const behaviours = {
      "a/x": () => ok(300, 20, 50),
      "b/x": () => ok(20_000, 2_000, 500),
      "c/x": () => ok(300, 26, 50),
    };
    const simulation = new Simulation({ models }, behaviours, 5).steady(10_000, 10, undefined, 1).run();
    const asked = simulation.sent.filter(({ at, target }) => target === "b/x" && at > 5_000).length;
    figure(
      `a target that takes a thousand seconds was sent ${simulation.sent.filter(({ target }) => target === "b/x").length} of 10,000 requests`,
    );
    expect(asked).toBe(0);
  });
});
