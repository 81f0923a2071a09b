import { expect, it } from "vitest";
import { EndOfTurn } from "../src/end-of-turn.js";

class Loop {
  readonly ran: string[] = [];
  readonly #ends: (() => void)[] = [];
  readonly queue = new EndOfTurn((run) => this.#ends.push(run));

  put(name: string, run: () => void = () => undefined): boolean {
    return this.queue.put({
      run: () => {
        this.ran.push(name);
        run();
      },
    });
  }

  turn(): void {
    for (const end of this.#ends.splice(0)) end();
  }
}

/** One whose last turn had several tasks. */
function busyLoop(): Loop {
  const loop = new Loop();
  loop.put("at once");
  loop.put("put off");
  loop.turn();
  loop.ran.length = 0;
  return loop;
}

it("a task that comes alone in its turn, turn after turn, is not put off", () => {
  const loop = new Loop();
  for (let turns = 0; turns < 10; turns += 1) {
    expect(loop.put("alone")).toBe(false);
    loop.turn();
  }
  expect(loop.ran).toEqual([]);
});

it("where several come in one turn, the second and those after it are put off", () => {
  const loop = new Loop();
  expect([loop.put("a"), loop.put("b"), loop.put("c")]).toEqual([false, true, true]);
  loop.turn();
  expect(loop.ran).toEqual(["b", "c"]);
});

it("after a turn that had several, all are put off, and run in their order, once", () => {
  const loop = busyLoop();
  expect([loop.put("a"), loop.put("b"), loop.ran]).toEqual([true, true, []]);
  loop.turn();
  loop.turn();
  expect(loop.ran).toEqual(["a", "b"]);
});

it("after a turn that had one, the next is not put off any more", () => {
  const loop = busyLoop();
  expect(loop.put("a")).toBe(true);
  loop.turn();
  expect(loop.put("b")).toBe(false);
});

it("what a task puts off runs in the next turn", () => {
  const loop = busyLoop();
  loop.put("a", () => void loop.put("c"));
  loop.put("b");
  loop.turn();
  expect(loop.ran).toEqual(["a", "b"]);
  loop.turn();
  expect(loop.ran).toEqual(["a", "b", "c"]);
});

it("a task that throws keeps none of the others from running, nor those that were put off meanwhile", () => {
  const loop = busyLoop();
  loop.put("a", () => {
    loop.put("d");
    throw new Error("bug");
  });
  loop.put("b");
  loop.put("c");
  expect(() => loop.turn()).toThrow("bug");
  loop.turn();
  loop.turn();
  expect(loop.ran).toEqual(["a", "b", "c", "d"]);
});

it("the end of a turn is that of the event loop", async () => {
  const queue = new EndOfTurn();
  const ran: string[] = [];
  queue.put({ run: () => ran.push("alone") });
  queue.put({ run: () => ran.push("task") });
  process.nextTick(() => ran.push("tick"));
  await new Promise((resolve) => setImmediate(resolve));
  expect(ran).toEqual(["tick", "task"]);
});
