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

/** Tasks further apart than this come alone: it is about twice what one of them takes. In ms. */
const quietMs = 0.25;

export class EndOfTurn {
  readonly #now: () => number;
  readonly #schedule: (run: () => void) => void;
  #tasks: Task[] = [];
  #last = -Infinity;
  /** The last turn that had something to end with had several tasks: in the next one the first is not alone either. */
  #busy = false;

  /** @param now in ms. The turn ends when `schedule` calls back. For tests */
  constructor(
    now: () => number = () => performance.now(),
    schedule: (run: () => void) => void = (run) => void setImmediate(run),
  ) {
    this.#now = now;
    this.#schedule = schedule;
  }

  /** False: nothing is gained by putting it off, and the caller runs it. */
  put(task: Task): boolean {
    const now = this.#now();
    const isAlone = !this.#busy && now - this.#last > quietMs;
    this.#last = now;
    if (isAlone && this.#tasks.length === 0) return false;
    if (this.#tasks.push(task) === 1) this.#schedule(this.#run);
    return true;
  }

  readonly #run = (): void => {
    const tasks = this.#tasks;
    this.#tasks = [];
    this.#busy = tasks.length > 1;
    let done = 0;
    try {
      for (const task of tasks) {
        done += 1;
        task.run();
      }
    } finally {
      // One threw: the others have their turn all the same.
      if (done < tasks.length) {
        this.#tasks = [...tasks.slice(done), ...this.#tasks];
        this.#schedule(this.#run);
      }
    }
  };
}
