import { describe, expect, it } from "vitest";
import { Latency, latencyWindowMs, slaWindowMs } from "../../src/health/latency.js";
import { RollingWindow } from "../../src/health/window.js";

const now = 1_800_000_000_000;

describe("the means of a target", () => {
  it("weigh a token of a long answer as one of a short answer", () => {
    const latency = new Latency();
    latency.add(now, { ttftMs: 100, outputMs: 1_000, outputTokens: 10 });
    latency.add(now, { ttftMs: 300, outputMs: 900, outputTokens: 90 });
    expect(latency.long(now)).toEqual({ samples: 2, ttftMs: 200, timePerOutputTokenMs: 19 });
  });

  it("say nothing of the first token where no answer was streamed", () => {
    const latency = new Latency();
    latency.add(now, { ttftMs: undefined, outputMs: 1_000, outputTokens: 0 });
    expect(latency.long(now)).toEqual({ samples: 1, ttftMs: undefined, timePerOutputTokenMs: undefined });
  });

  it("forget after 3 minutes for the cutoff and after 20 for routing", () => {
    const latency = new Latency();
    latency.begin(now);
    latency.add(now, { ttftMs: 100, outputMs: 1_000, outputTokens: 10 });
    expect(latency.short(now + slaWindowMs * 0.9).samples).toBe(1);
    expect(latency.short(now + slaWindowMs).samples).toBe(0);
    expect([latency.long(now + latencyWindowMs * 0.9).samples, latency.begun(now + latencyWindowMs * 0.9)]).toEqual([
      1, 1,
    ]);
    expect([latency.long(now + latencyWindowMs).samples, latency.begun(now + latencyWindowMs)]).toEqual([0, 0]);
  });
});

describe("a rolling window", () => {
  it("sums what was added within it", () => {
    const window = new RollingWindow(24_000, 2);
    for (let second = 0; second < 100; second += 1) window.add(now + second * 1_000, [1, second]);
    expect(window.sums(now + 99_000)[0]).toBe(24);
    expect(window.sums(now + 99_000)[1]).toBe((76 + 99) * 12);
  });

  it("takes a time that steps back for the newest", () => {
    const window = new RollingWindow(24_000, 1);
    window.add(now, [1]);
    window.add(now - 100_000, [1]);
    expect(window.sums(now)).toEqual([2]);
  });
});
