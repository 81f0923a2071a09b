import { describe, expect, it } from "vitest";
import { Cooldown, type CooldownPolicy } from "../../src/health/cooldown.js";
import { MemoryHealthStore } from "../../src/health/store.js";

const policy: CooldownPolicy = {
  failures: 2,
  failureRatio: 0.1,
  windowMs: 120_000,
  durationMs: 30_000,
  maxDurationMs: 300_000,
};
const start = 1_800_000_000_000;

function rested(overrides: Partial<CooldownPolicy> = {}): { cooldown: Cooldown; store: MemoryHealthStore } {
  const store = new MemoryHealthStore();
  const cooldown = new Cooldown("a/x", { ...policy, ...overrides }, store);
  fail(cooldown, start);
  fail(cooldown, start);
  return { cooldown, store };
}

function fail(cooldown: Cooldown, now: number, retryAfterMs?: number): ReturnType<Cooldown["fail"]> {
  return cooldown.fail(cooldown.begin(now), now, retryAfterMs);
}

describe("an available target", () => {
  it("rests at its second counted failure", () => {
    const cooldown = new Cooldown("a/x", policy, new MemoryHealthStore());
    expect(fail(cooldown, start)).toBeUndefined();
    expect(fail(cooldown, start)).toEqual({ type: "rest", rest: { until: start + 30_000, streak: 1 } });
    expect(cooldown.standing(start + 29_999)).toBe("resting");
    expect(cooldown.backAt(start)).toBe(start + 30_000);
  });

  it("does not rest below the ratio of failures to attempts", () => {
    const cooldown = new Cooldown("a/x", policy, new MemoryHealthStore());
    for (let index = 0; index < 19; index += 1) cooldown.succeed(cooldown.begin(start));
    expect(fail(cooldown, start)).toBeUndefined();
    // Attempt 21: two of 21 are less than a tenth.
    expect(fail(cooldown, start)).toBeUndefined();
    // Attempt 22, and three failures.
    expect(fail(cooldown, start)).toMatchObject({ type: "rest" });
  });

  it("counts attempts that are still under way", () => {
    const cooldown = new Cooldown("a/x", policy, new MemoryHealthStore());
    for (let index = 0; index < 30; index += 1) cooldown.begin(start);
    expect(fail(cooldown, start)).toBeUndefined();
    expect(fail(cooldown, start)).toBeUndefined();
  });

  it("forgets what the window has left behind", () => {
    const cooldown = new Cooldown("a/x", policy, new MemoryHealthStore());
    fail(cooldown, start);
    expect(fail(cooldown, start + 120_001)).toBeUndefined();
  });

  it("counts a stream that breaks after release, and no success before it", () => {
    const cooldown = new Cooldown("a/x", policy, new MemoryHealthStore());
    for (const end of [undefined, { type: "rest" }]) {
      const token = cooldown.begin(start);
      cooldown.succeed(token);
      expect(cooldown.fail(token, start + 10, undefined)?.type).toBe(end?.type);
    }
  });

  it("rests as long as `Retry-After` says, up to the limit", () => {
    for (const [retryAfterMs, length] of [
      [5_000, 5_000],
      [3_600_000, 300_000],
    ]) {
      const cooldown = new Cooldown("a/x", policy, new MemoryHealthStore());
      fail(cooldown, start);
      expect(fail(cooldown, start, retryAfterMs)).toMatchObject({ rest: { until: start + length } });
    }
  });
});

describe("a resting target", () => {
  it("is available after a success", () => {
    const { cooldown } = rested();
    const token = cooldown.begin(start + 1);
    expect(cooldown.succeed(token)).toEqual({ type: "recovery" });
    expect(cooldown.standing(start + 2)).toBe("available");
    expect(fail(cooldown, start + 3)).toBeUndefined();
  });

  it("does not rest longer for the failure of a request that had no other target", () => {
    const { cooldown } = rested();
    expect(fail(cooldown, start + 10)).toBeUndefined();
    expect(cooldown.backAt(start + 10)).toBe(start + 30_000);
  });

  it("rests longer where `Retry-After` says so, without counting a further rest", () => {
    const { cooldown } = rested();
    expect(fail(cooldown, start + 10, 60_000)).toEqual({ type: "rest", rest: { until: start + 60_010, streak: 1 } });
  });

  it("is not changed by attempts that began before the rest", () => {
    const store = new MemoryHealthStore();
    const cooldown = new Cooldown("a/x", policy, store);
    const [early, other] = [cooldown.begin(start), cooldown.begin(start)];
    fail(cooldown, start);
    fail(cooldown, start);
    expect(cooldown.succeed(early)).toBeUndefined();
    expect(cooldown.fail(other, start + 40_000, undefined)).toBeUndefined();
    expect(store.rest("a/x")).toEqual({ until: start + 30_000, streak: 1 });
  });
});

describe("a target whose rest is over", () => {
  const over = start + 30_000;

  it("is probed by one attempt", () => {
    const { cooldown } = rested();
    expect(cooldown.backAt(over)).toBe(0);
    cooldown.begin(over);
    expect(cooldown.standing(over)).toBe("probing");
    expect(cooldown.backAt(over)).toBe(over);
  });

  it("is available when the probe succeeds", () => {
    const { cooldown } = rested();
    expect(cooldown.succeed(cooldown.begin(over))).toEqual({ type: "recovery" });
    expect(cooldown.standing(over)).toBe("available");
  });

  it("rests twice as long each time the probe fails, up to the limit, and from the start after a success", () => {
    const { cooldown } = rested();
    let now = over;
    const lengths: number[] = [];
    for (let probe = 0; probe < 6; probe += 1) {
      const change = fail(cooldown, now);
      if (change?.type === "rest") lengths.push(change.rest.until - now);
      now = cooldown.backAt(now);
    }
    expect(lengths).toEqual([60_000, 120_000, 240_000, 300_000, 300_000, 300_000]);
    cooldown.succeed(cooldown.begin(now));
    fail(cooldown, now);
    expect(fail(cooldown, now)).toMatchObject({ rest: { streak: 1, until: now + 30_000 } });
  });

  it("counts a probe that was released and then broke as its first failure", () => {
    const { cooldown } = rested();
    const probe = cooldown.begin(over);
    expect(cooldown.succeed(probe)).toEqual({ type: "recovery" });
    expect(cooldown.fail(probe, over + 10, undefined)).toBeUndefined();
    expect(fail(cooldown, over + 20)).toMatchObject({ type: "rest", rest: { streak: 1 } });
  });

  it("is probed again when the probe ends without an outcome", () => {
    const { cooldown } = rested();
    cooldown.abandon(cooldown.begin(over));
    expect(cooldown.standing(over)).toBe("due");
  });

  it("keeps the second probe when the first, from before the latest rest, ends", () => {
    const { cooldown } = rested();
    const stuck = cooldown.begin(over - 1);
    const probe = cooldown.begin(over);
    cooldown.fail(probe, over, undefined);
    const second = cooldown.begin(over + 60_000);
    cooldown.abandon(stuck);
    expect(cooldown.standing(over + 60_000)).toBe("probing");
    expect(cooldown.succeed(second)).toEqual({ type: "recovery" });
  });
});

describe("a store that other processes share", () => {
  it("brings rests, and ends them", () => {
    const store = new MemoryHealthStore();
    const cooldown = new Cooldown("a/x", policy, store);
    store.setRest("a/x", { until: start + 10_000, streak: 3 });
    expect(cooldown.standing(start)).toBe("resting");
    store.setRest("a/x", undefined);
    expect(cooldown.standing(start)).toBe("available");
  });

  it("does not let an attempt from before end another process's rest", () => {
    const store = new MemoryHealthStore();
    const cooldown = new Cooldown("a/x", policy, store);
    const token = cooldown.begin(start);
    store.setRest("a/x", { until: start + 10_000, streak: 1 });
    expect(cooldown.succeed(token)).toBeUndefined();
    expect(store.rest("a/x")).toBeDefined();
  });

  it("goes on counting the rests in a row of the others", () => {
    const store = new MemoryHealthStore();
    const cooldown = new Cooldown("a/x", policy, store);
    store.setRest("a/x", { until: start, streak: 2 });
    expect(fail(cooldown, start)).toMatchObject({ rest: { streak: 3, until: start + 120_000 } });
  });
});
