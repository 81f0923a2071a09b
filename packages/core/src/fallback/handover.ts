/** Hands values from a running function to a consumer that pulls: the function waits until each is taken. */

export class Handover<T> {
  #offered: { readonly value: T; taken(): void } | undefined;
  #wake: (() => void) | undefined;
  #closed = false;

  /** Resolves when the consumer asks for the next one, or has left. */
  offer(value: T): Promise<void> {
    return new Promise((resolve) => {
      this.#offered = { value, taken: resolve };
      this.#wake?.();
      if (this.#closed) resolve();
    });
  }

  /** The next value; undefined once nothing more will be offered. */
  async take(): Promise<T | undefined> {
    if (this.#offered === undefined && !this.#closed) await new Promise<void>((resolve) => (this.#wake = resolve));
    this.#wake = undefined;
    return this.#offered?.value;
  }

  /** The value that was taken is done with: the function goes on. */
  proceed(): void {
    const offered = this.#offered;
    this.#offered = undefined;
    offered?.taken();
  }

  /** Either side has ended. */
  close(): void {
    this.#closed = true;
    this.#wake?.();
    this.proceed();
  }
}
