import { describe, expect, it } from "vitest";
import { fail, figure, ok, percent, Simulation, type Answer } from "./simulation.js";

const second = 1_000;
const models = { m: { targets: [{ target: "a/x" }, { target: "b/x" }] } };
const healthy = (): Answer => ok(800, 10, 50);

describe("a target that serves 95 % of 100 requests a second", () => {
  it("does not rest for a burst of 429s in every second", () => {
    let asked = 0;
    const bursts = (): Answer => (asked++ % 100 >= 60 && (asked - 1) % 100 < 65 ? fail(429, 5) : healthy());
    const simulation = new Simulation({ models }, { "a/x": bursts, "b/x": healthy }, 1).steady(100_000, 10).run();
    const rests = simulation.changes.filter(({ change }) => change.type === "rest").length;
    const served = simulation.finished.filter(({ target }) => target === "a/x").length / 100_000;
    figure(
      `with 5 of every 100 requests refused in a row, the target rested ${rests} times and served ${percent(served)}`,
    );
    expect(rests).toBe(0);
    expect(served).toBeCloseTo(0.95, 3);
  });

  it("does not flap when any request may be refused", () => {
    const refuses = (_now: number, random: () => number): Answer => (random() < 0.05 ? fail(429, 5) : healthy());
    const simulation = new Simulation({ models }, { "a/x": refuses, "b/x": healthy }, 2).steady(100_000, 10).run();
    const rests = simulation.changes.filter(({ change }) => change.type === "rest").length;
    const served = simulation.finished.filter(({ target }) => target === "a/x").length / 100_000;
    figure(`with 5 % refused at random, the target rested ${rests} times and served ${percent(served)}`);
    expect(rests).toBeLessThanOrEqual(2);
    expect(served).toBeGreaterThan(0.88);
    expect(simulation.finished.every(({ target }) => target !== undefined)).toBe(true);
  });
});

describe("a target that fails for a while, at 100 requests a second", () => {
  const downFrom = 200 * second;
  const downUntil = 400 * second;
  const down = (now: number): Answer => (now >= downFrom && now < downUntil ? fail(503, 20) : healthy());
  const simulation = new Simulation({ models }, { "a/x": down, "b/x": healthy }, 3).steady(100_000, 10).run();
  const rests = simulation.changes.filter(({ change }) => change.type === "rest");
  const recovery = simulation.changes.find(({ change }) => change.type === "recovery");

  it("rests after a tenth of the attempts in the window has failed", () => {
    const failures = simulation.sent.filter(
      ({ at, target }) => target === "a/x" && at >= downFrom && at < (rests[0]?.at ?? 0),
    ).length;
    figure(
      `after two healthy minutes it rested ${((rests[0]?.at ?? 0) - downFrom) / second} s into the outage, after ${failures} attempts`,
    );
    expect(failures).toBeLessThan(1_250);
  });

  it("is probed by one request after each rest, and rests twice as long each time", () => {
    const lengths = rests.map(({ at, change }) => (change.type === "rest" ? change.rest.until - at : 0));
    const tried = simulation.sent.filter(
      ({ at, target }) => target === "a/x" && at > (rests[0]?.at ?? 0) && at < (recovery?.at ?? 0),
    );
    figure(`rests of ${lengths.map((length) => length / second).join(", ")} s, ${tried.length} probes`);
    expect(lengths).toEqual([30, 60, 120, 240].map((length) => length * second).slice(0, lengths.length));
    expect(tried).toHaveLength(rests.length);
  });

  it("is back within one rest of its recovery, and no request has failed", () => {
    const longest = Math.max(...rests.map(({ at, change }) => (change.type === "rest" ? change.rest.until - at : 0)));
    figure(
      `back ${(((recovery?.at ?? 0) - downUntil) / second).toFixed(1)} s after it healed; the last rest was ${longest / second} s`,
    );
    expect((recovery?.at ?? 0) - downUntil).toBeLessThanOrEqual(longest + second);
    expect(simulation.shares((recovery?.at ?? 0) + 1)["a/x"]).toBeCloseTo(1);
    expect(simulation.finished.filter(({ target }) => target === undefined)).toEqual([]);
  });
});

describe("the end of a rest", () => {
  it("lets one of 200 requests that come at once probe the target", () => {
    const down = (now: number): Answer => (now < 10 * second ? fail(503, 5) : healthy());
    const simulation = new Simulation({ models }, { "a/x": down, "b/x": healthy }, 4).steady(2, 100);
    simulation.at(40 * second, () => {
      for (let index = 0; index < 200; index += 1) simulation.request();
    });
    simulation.at(45 * second, () => simulation.request());
    simulation.run();
    const probes = simulation.sent.filter(({ at, target }) => at === 40 * second && target === "a/x").length;
    const others = simulation.sent.filter(({ at, target }) => at === 40 * second && target === "b/x").length;
    figure(`of 200 requests at the end of a rest ${probes} probed and ${others} used the other target`);
    expect([probes, others]).toEqual([1, 199]);
    expect(simulation.sent.at(-1)?.target).toBe("a/x");
  });

  it("is set once by 200 requests that fail together", () => {
    const simulation = new Simulation({ models }, { "a/x": () => fail(503, 50), "b/x": healthy }, 5);
    simulation.at(0, () => {
      for (let index = 0; index < 200; index += 1) simulation.request();
    });
    simulation.run();
    const rests = simulation.changes.map(({ change }) => (change.type === "rest" ? change.rest.until : 0));
    figure(`200 failures at once set ${rests.length} rest, until ${rests[0]} ms`);
    expect(rests).toEqual([30 * second + 50]);
  });
});

describe("when all targets rest", () => {
  it("tries the one that is back soonest, and answers with what it says", () => {
    const simulation = new Simulation(
      { models: { m: { targets: [{ target: "a/x" }, { target: "b/x" }, { target: "c/x" }] } }, retry: { attempts: 0 } },
      { "a/x": () => fail(503, 5, 120_000), "b/x": () => fail(503, 5, 60_000), "c/x": () => fail(503, 5, 90_000) },
      6,
    );
    simulation.steady(2, 100).at(5 * second, () => simulation.request());
    simulation.run();
    const order = simulation.sent.filter(({ at }) => at >= 5 * second).map(({ target }) => target);
    figure(`all resting for 120, 60 and 90 s: tried in the order ${order.join(", ")}`);
    expect(order).toEqual(["b/x", "c/x", "a/x"]);
  });
});
