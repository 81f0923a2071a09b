import { expect, it } from "vitest";
import { Deadlines } from "../../src/fallback/deadlines.js";
import { ManualClock } from "../../src/testing/manual-clock.js";

function deadlines(onExpire: (kind: string) => void = () => undefined) {
  const clock = new ManualClock(0);
  const fired: [string, number, number][] = [];
  const all = new Deadlines<string>(clock, {
    onDeadline(kind, timeoutMs) {
      fired.push([kind, timeoutMs, clock.now()]);
      onExpire(kind);
    },
  });
  return { clock, fired, all };
}

it("expire in the order of their times, with their length, on one timer", () => {
  const { clock, fired, all } = deadlines();
  all.set("b", 20, 2);
  all.set("a", 10, 1);
  expect(clock.pending).toBe(1);
  clock.advanceSync(100);
  expect(fired).toEqual([
    ["a", 1, 10],
    ["b", 2, 20],
  ]);
  expect(clock.pending).toBe(0);
});

it("expire in that order also where the timer is late, and of two at once the one that was set first", () => {
  const clock = new ManualClock(0);
  let fire: () => void = () => undefined;
  const late = {
    now: () => 50,
    setTimer: (_at: number, callback: () => void) => ((fire = callback), { cancel: () => undefined }),
  };
  const fired: string[] = [];
  const all = new Deadlines<string>(late, { onDeadline: (kind) => void fired.push(kind) });
  all.set("second", 20, 1);
  all.set("third", 20, 1);
  all.set("first", 10, 1);
  fire();
  expect(fired).toEqual(["first", "second", "third"]);
  expect(clock.pending).toBe(0);
});

it("that are moved later do not expire before, and cost no timer", () => {
  const { clock, fired, all } = deadlines();
  for (let at = 0; at < 100; at += 1) {
    all.set("idle", at + 10, 10);
    expect(clock.pending).toBe(1);
    clock.advanceSync(1);
  }
  expect(fired).toEqual([]);
  clock.advanceSync(9);
  expect(fired).toEqual([["idle", 10, 109]]);
});

it("that are moved earlier expire then", () => {
  const { clock, fired, all } = deadlines();
  all.set("a", 100, 100);
  all.set("a", 10, 10);
  clock.advanceSync(10);
  expect(fired).toEqual([["a", 10, 10]]);
});

it("that are cleared or stopped do not expire, and leave no timer", () => {
  const { clock, fired, all } = deadlines();
  all.set("a", 10, 1);
  all.set("b", 20, 1);
  all.clear("a");
  all.clear("never set");
  clock.advanceSync(15);
  all.clear("b");
  expect(clock.pending).toBe(0);
  all.set("c", 30, 1);
  all.stop();
  expect(clock.pending).toBe(0);
  clock.advanceSync(100);
  expect(fired).toEqual([]);
});

it("that one which expires stops do not expire with it", () => {
  const { clock, fired, all } = deadlines(() => all.stop());
  all.set("a", 10, 1);
  all.set("b", 10, 1);
  clock.advanceSync(10);
  expect(fired).toEqual([["a", 1, 10]]);
  expect(clock.pending).toBe(0);
});

it("can be set anew by one that expires", () => {
  let again = 3;
  const { clock, fired, all } = deadlines(() => {
    if ((again -= 1) > 0) all.set("a", clock.now() + 5, 5);
  });
  all.set("a", 5, 5);
  clock.advanceSync(100);
  expect(fired.map(([, , at]) => at)).toEqual([5, 10, 15]);
});
