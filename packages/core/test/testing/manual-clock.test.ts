import { describe, expect, it } from "vitest";
import { ManualClock } from "../../src/testing/manual-clock.js";

describe("ManualClock", () => {
  it("starts at a time that is not 0 and stands still", () => {
    expect(new ManualClock().now()).toBe(1000);
  });

  it("fires timers in the order of their times, each at its own time", async () => {
    const clock = new ManualClock();
    const fired: [string, number][] = [];
    clock.setTimer(1030, () => fired.push(["late", clock.now()]));
    clock.setTimer(1010, () => fired.push(["early", clock.now()]));
    await clock.advance(50);
    expect(fired).toEqual([
      ["early", 1010],
      ["late", 1030],
    ]);
    expect(clock.now()).toBe(1050);
  });

  it("leaves timers beyond the span pending", async () => {
    const clock = new ManualClock();
    clock.setTimer(1011, () => expect.unreachable());
    await clock.advance(10);
    expect(clock.pending).toBe(1);
    expect(clock.nextAt).toBe(1011);
  });

  it("does not fire a cancelled timer", async () => {
    const clock = new ManualClock();
    clock.setTimer(1010, () => expect.unreachable()).cancel();
    await clock.advance(10);
    expect(clock.pending).toBe(0);
  });

  it("lets promise callbacks run between timers, and fires the timers that they set", async () => {
    const clock = new ManualClock();
    const sleep = (ms: number): Promise<void> =>
      new Promise((resolve) => void clock.setTimer(clock.now() + ms, resolve));
    const wokenAt: number[] = [];
    const loop = (async () => {
      for (let round = 0; round < 3; round += 1) {
        await sleep(10);
        wokenAt.push(clock.now());
      }
    })();
    await clock.advance(30);
    await loop;
    expect(wokenAt).toEqual([1010, 1020, 1030]);
  });

  it("fires a timer whose time is over at the next advance, not at once", async () => {
    const clock = new ManualClock();
    let fired = false;
    clock.setTimer(900, () => (fired = true));
    expect(fired).toBe(false);
    await clock.advance(0);
    expect(fired).toBe(true);
    expect(clock.now()).toBe(1000);
  });

  it("ends a loop of timers that do not move on", async () => {
    const clock = new ManualClock();
    const again = (): void => void clock.setTimer(clock.now(), again);
    again();
    expect(() => clock.advanceSync(1)).toThrow("without end");
  });
});
