import { describe, expect, it } from "vitest";
import { seededRandom } from "./seeded-random.js";
import { fail, figure, ok, Simulation, type Answer, type Sent } from "./simulation.js";

const ttlSeconds = 600;
const sticky = { ttlSeconds, sessionIdentifiers: [{ source: "metadata", key: "session" }] } as const;
const targets = [
  { target: "a/x", weight: 50 },
  { target: "b/x", weight: 30 },
  { target: "c/x", weight: 20 },
];
const models = { m: { routing: "weight", targets, sticky } } as const;
const downFrom = 400_000;
const downUntil = 420_000;

const healthy = (): Answer => ok(200, 1, 10);
const behaviours = {
  "a/x": (now: number) => (now >= downFrom && now < downUntil ? fail(503, 5) : healthy()),
  "b/x": healthy,
  "c/x": healthy,
};

/** Requests of a session that went elsewhere than the one before it. */
function moves(sent: readonly Sent[]): { readonly before: Sent; readonly after: Sent }[] {
  const last = new Map<string, Sent>();
  return sent.flatMap((after) => {
    const before = last.get(after.session ?? "");
    last.set(after.session ?? "", after);
    return before === undefined || before.target === after.target ? [] : [{ before, after }];
  });
}

describe("100,000 requests of 2,000 sticky sessions", () => {
  const random = seededRandom(9);
  const simulation = new Simulation({ models }, behaviours, 7).steady(100_000, 10, () => ({
    metadata: new Map([["session", `s${Math.floor(random() * 2_000)}`]]),
  }));
  simulation.run();

  it("stay at their target until it fails", () => {
    const all = moves(simulation.sent);
    // The target rests for a while after its last failure: sessions that come only then move, too.
    const restedUntil = downUntil + 60_000;
    const uncaused = all.filter(({ after }) => after.at < downFrom || after.at >= restedUntil);
    const others = new Set(all.filter(({ before }) => before.target === "a/x").map(({ before }) => before.session));
    figure(
      `${others.size} of 2,000 sessions moved away from the target that failed, ${uncaused.length} before or after`,
    );
    expect(others.size).toBeGreaterThan(500);
    expect(uncaused).toEqual([]);
  });

  it("were divided by the weights", () => {
    const first = new Map(simulation.sent.toReversed().map(({ session, target }) => [session, target]));
    const share = [...first.values()].filter((target) => target === "a/x").length / first.size;
    figure(`${(100 * share).toFixed(1)} % of the sessions began at the target with weight 50`);
    expect(Math.abs(share - 0.5)).toBeLessThan(0.04);
  });
});

describe("a sticky session", () => {
  it("is placed anew when nobody used it for its time", () => {
    const session = { metadata: new Map([["session", "s"]]) };
    const simulation = new Simulation({ models }, { "a/x": healthy, "b/x": healthy, "c/x": healthy }, 8);
    const gap = (ttlSeconds + 1) * 1_000;
    simulation.steady(300, gap, () => session).run();
    const places = new Set(simulation.sent.map(({ target }) => target));
    figure(`a session that comes every ${ttlSeconds + 1} s was placed at ${places.size} targets in 300 requests`);
    expect(places.size).toBe(3);
  });

  it("stays for as long as it is used in time", () => {
    const session = { metadata: new Map([["session", "s"]]) };
    const simulation = new Simulation({ models }, { "a/x": healthy, "b/x": healthy, "c/x": healthy }, 8);
    simulation.steady(300, (ttlSeconds - 1) * 1_000, () => session).run();
    expect(new Set(simulation.sent.map(({ target }) => target)).size).toBe(1);
  });
});
