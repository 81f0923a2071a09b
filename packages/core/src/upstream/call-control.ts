/** What undici lets a handler do with its request. */
export interface CallControl {
  abort(reason: Error): void;
  pause(): void;
  resume(): void;
}

/** Of one of our own connections: undici's parser is told to pause by what the handler call under way returns. */
export class ParserControl implements CallControl {
  readonly #abort: (reason: Error) => void;
  #resume: (() => void) | undefined;
  #paused = false;

  constructor(abort: (reason: Error) => void) {
    this.#abort = abort;
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** @param resume of the parser; does nothing where that is not paused */
  resumeWith(resume: () => void): void {
    this.#resume = resume;
  }

  abort(reason: Error): void {
    this.#abort(reason);
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#resume?.();
  }
}
