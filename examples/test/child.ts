/** Runs an example as a process of its own, as a user would. */

import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

type Environment = Readonly<Record<string, string | undefined>>;

export class Child {
  stdout = "";
  stderr = "";
  /** The exit code, or the signal that ended it, once its output is complete. */
  readonly exit: Promise<number | string | null>;
  readonly #process: ChildProcess;
  #wake: () => void = () => {};

  /** @param file below `examples/dist` */
  constructor(file: string, env: Environment, args: readonly string[] = []) {
    const path = fileURLToPath(new URL(`../dist/${file}`, import.meta.url));
    if (!existsSync(path)) throw new Error(`${path} does not exist: run "npm run build" first`);
    // Only what is given: a key in the developer's environment must not leak into a test.
    const clean = { PATH: process.env["PATH"], ...env };
    this.#process = spawn(process.execPath, [path, ...args], { env: clean, stdio: ["ignore", "pipe", "pipe"] });
    this.#process.stdout?.on("data", (data) => this.#take("stdout", data));
    this.#process.stderr?.on("data", (data) => this.#take("stderr", data));
    this.exit = new Promise((resolve) => {
      this.#process.once("close", (code, signal) => {
        resolve(code ?? signal);
        this.#wake();
      });
    });
  }

  /** The match, once stdout has one; fails when the process ends before. */
  async printed(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.stdout);
      if (match !== null) return match;
      if (this.#process.exitCode !== null) throw new Error(`ended without printing ${pattern}: ${this.stderr}`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  signal(name: "SIGTERM" | "SIGINT"): void {
    this.#process.kill(name);
  }

  /** Ends it the hard way, for the end of a test. */
  async kill(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.exit;
  }

  #take(stream: "stdout" | "stderr", data: Buffer): void {
    this[stream] += data.toString();
    this.#wake();
  }
}
