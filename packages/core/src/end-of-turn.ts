/**
 * Work that is put off to the end of a turn of the event loop and then done in a row.
 *
 * Under load one turn reads from many connections. Work that is done as each of them is read finds the caches full of the
 * code that reads, and each of its writes wakes whoever waits at the other end anew. In a row a short stream costs a
 * quarter less. Work that comes alone is not put off: the first byte of the only stream would come some microseconds later.
 */

/** Must not throw; what it throws nobody but the process hears. */
export interface Task {
  run(): void;
}

export class EndOfTurn {
  readonly #schedule: (run: () => void) => void;
  #tasks: Task[] = [];
  /** That came in this turn. */
  #count = 0;
  /** The last turn in which one came had several: the first of this one is not alone either. */
  #busy = false;

  /** @param schedule calls back when the turn is over. For tests */
  constructor(schedule: (run: () => void) => void = (run) => void setImmediate(run)) {
    this.#schedule = schedule;
  }

  /** False: nothing is gained by putting it off, and the caller runs it. */
  put(task: Task): boolean {
    this.#count += 1;
    if (this.#count === 1) {
      this.#schedule(this.#run);
      if (!this.#busy) return false;
    }
    this.#tasks.push(task);
    return true;
  }

  readonly #run = (): void => {
    const tasks = this.#tasks;
    this.#busy = this.#count > 1;
    this.#count = 0;
    this.#tasks = [];
    let done = 0;
    try {
      for (const task of tasks) {
        done += 1;
        task.run();
      }
    } finally {
      // One threw: the others have their turn all the same.
      if (done < tasks.length) this.#again(tasks.slice(done));
    }
  };

  #again(tasks: readonly Task[]): void {
    if (this.#count === 0) this.#schedule(this.#run);
    this.#count += tasks.length;
    this.#tasks = [...tasks, ...this.#tasks];
  }
}
