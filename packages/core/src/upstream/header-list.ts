/** Headers in the order in which they were first set. A search, since for a dozen of names a map is dearer. */

/** Whose mistake a header is that cannot be sent. */
export type HeaderSource = "client" | "config" | "credential";

export class HeaderList {
  /** Name, value, name, value, … Each name once. */
  readonly flat: string[] = [];
  readonly #sources: HeaderSource[] = [];

  has(name: string): boolean {
    return this.#find(name) !== -1;
  }

  set(name: string, value: string, source: HeaderSource): void {
    const at = this.#find(name);
    if (at === -1) this.add(name, value, source);
    else {
      this.flat[at + 1] = value;
      this.#sources[at / 2] = source;
    }
  }

  /** A name that is not in the list. */
  add(name: string, value: string, source: HeaderSource): void {
    this.flat.push(name, value);
    this.#sources.push(source);
  }

  delete(name: string): void {
    const at = this.#find(name);
    if (at === -1) return;
    this.flat.splice(at, 2);
    this.#sources.splice(at / 2, 1);
  }

  /** The first header whose value does not pass. */
  findInvalid(passes: (value: string) => boolean): { name: string; source: HeaderSource } | undefined {
    for (let at = 0; at < this.flat.length; at += 2) {
      if (passes(this.flat[at + 1] as string)) continue;
      return { name: this.flat[at] as string, source: this.#sources[at / 2] as HeaderSource };
    }
    return undefined;
  }

  #find(name: string): number {
    for (let at = 0; at < this.flat.length; at += 2) if (this.flat[at] === name) return at;
    return -1;
  }
}
