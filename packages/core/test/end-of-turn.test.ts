import { expect, it } from "vitest";
import { EndOfTurn } from "../src/end-of-turn.js";

class Loop {
  now = 0;
  readonly ran: string[] = [];
  readonly #ends: (() => void)[] = [];
  readonly queue = new EndOfTurn(
    () => this.now,
    (run) => this.#ends.push(run),
  );

  put(name: string, run: () => void = () => undefined): boolean {
    return this.queue.put({
      run: () => {
        this.ran.push(name);
        run();
      },
    });
  }

  /** How many turns had something to end with. */
  turn(): number {
    const ends = this.#ends.splice(0);
    for (const end of ends) end();
    return ends.length;
  }
}

/** One in which a task has just been. */
function busyLoop(): Loop {
  const loop = new Loop();
  loop.put("first");
  return loop;
}

it("a task that comes alone is not put off", () => {
  const loop = new Loop();
  for (loop.now = 0; loop.now < 10; loop.now += 1) expect(loop.put("alone")).toBe(false);
  expect(loop.turn()).toBe(0);
});

it("tasks that come together run at the end of the turn, in their order, once", () => {
  const loop = busyLoop();
  expect([loop.put("a"), loop.put("b"), loop.ran]).toEqual([true, true, []]);
  expect(loop.turn()).toBe(1);
  expect(loop.turn()).toBe(0);
  expect(loop.ran).toEqual(["a", "b"]);
});

it("where a turn had several, the next one is gathered however late it comes", () => {
  const loop = busyLoop();
  loop.put("a");
  loop.put("b");
  loop.turn();
  loop.now = 100;
  expect(loop.put("c")).toBe(true);
  loop.turn();
  loop.now = 200;
  expect(loop.put("alone again")).toBe(false);
});

it("a task never overtakes one that was put off", () => {
  const loop = busyLoop();
  loop.put("a");
  loop.now = 100;
  expect(loop.put("b")).toBe(true);
  loop.turn();
  expect(loop.ran).toEqual(["a", "b"]);
});

it("what a task puts off runs in the next turn", () => {
  const loop = busyLoop();
  loop.put("a", () => loop.put("b"));
  loop.turn();
  expect(loop.ran).toEqual(["a"]);
  loop.turn();
  expect(loop.ran).toEqual(["a", "b"]);
});

it("a task that throws keeps none of the others from running", () => {
  const loop = busyLoop();
  loop.put("a", () => {
    throw new Error("bug");
  });
  loop.put("b");
  expect(() => loop.turn()).toThrow("bug");
  loop.put("c");
  loop.turn();
  expect(loop.ran).toEqual(["a", "b", "c"]);
});

it("the end of a turn is that of the event loop", async () => {
  const queue = new EndOfTurn(() => 0);
  const ran: string[] = [];
  queue.put({ run: () => ran.push("alone") });
  queue.put({ run: () => ran.push("task") });
  process.nextTick(() => ran.push("tick"));
  await new Promise((resolve) => setImmediate(resolve));
  expect(ran).toEqual(["tick", "task"]);
});
