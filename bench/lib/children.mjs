/** The processes of a run: provider, load client and subjects. All end with the run, whichever way it ends. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { cpuMs, hasSchedstat, rssKib } from "./host.mjs";

const startTimeoutMs = 20_000;

/** @type {Set<import("node:child_process").ChildProcess>} */
const running = new Set();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/**
 * @typedef {object} Launch
 * @property {string} command
 * @property {readonly string[]} args
 * @property {number | undefined} core
 * @property {Record<string, string>} [env]
 * @property {string} [cwd]
 * @property {boolean} [ipc] it is one of ours and talks over a channel
 */

/** @param {Launch} launch */
function start({ command, args, core, env, cwd, ipc = true }) {
  const [file, rest] = core === undefined ? [command, args] : ["taskset", ["-c", String(core), command, ...args]];
  const stdio = ipc ? ["ignore", "ignore", "inherit", "ipc"] : ["ignore", "ignore", "inherit"];
  const child = spawn(file, rest, { cwd, env: { ...process.env, ...env }, stdio });
  running.add(child);
  child.on("exit", () => running.delete(child));
  child.on("error", (error) => console.error(`${command}: ${error.message}`));
  return child;
}

/** Waits for the first message, which says where a child listens. @param {import("node:child_process").ChildProcess} child */
async function firstMessage(child) {
  const timeout = new AbortController();
  try {
    return await Promise.race([
      once(child, "message", { signal: timeout.signal }).then(([message]) => message),
      once(child, "exit", { signal: timeout.signal }).then(([code]) =>
        Promise.reject(new Error(`ended with code ${code}`)),
      ),
      delay(startTimeoutMs, undefined, { signal: timeout.signal }).then(() =>
        Promise.reject(new Error("did not start")),
      ),
    ]);
  } finally {
    timeout.abort();
  }
}

/** @param {import("node:child_process").ChildProcess} child */
async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "exit");
  // Ours end by themselves then, and write the profile that was asked for.
  if (child.connected) child.disconnect();
  else child.kill("SIGTERM");
  await Promise.race([ended, delay(5000, undefined, { ref: false })]);
  child.kill("SIGKILL");
}

/** @param {number | undefined} core */
export async function startProvider(core) {
  const script = fileURLToPath(new URL("provider.mjs", import.meta.url));
  const child = start({ command: process.execPath, args: [script], core });
  const { port } = await firstMessage(child);
  return { port, finishIdle: () => child.send({ type: "finish-idle" }), stop: () => stop(child) };
}

/** @param {number | undefined} core */
export async function startLoadClient(core) {
  const script = fileURLToPath(new URL("load-client.mjs", import.meta.url));
  const child = start({ command: process.execPath, args: ["--max-semi-space-size=32", script], core });
  await firstMessage(child);
  let id = 0;
  const waiting = new Map();
  child.on("message", (message) => {
    waiting.get(message.id)?.(message);
    waiting.delete(message.id);
  });
  child.on("exit", () => {
    for (const settle of waiting.values()) settle({ result: {}, errors: ["the load client ended"] });
  });
  return {
    /** Errors of the streams are thrown: a figure out of broken streams is no figure. */
    async ask(command, options) {
      id += 1;
      const { result, errors } = await new Promise((resolve) => {
        waiting.set(id, resolve);
        child.send({ id, command, options });
      });
      if (errors.length > 0) throw new Error(`${command}: ${errors[0]}`);
      return result;
    },
    stop: () => stop(child),
  };
}

export class SubjectProcess {
  #child;
  port = 0;

  constructor(child) {
    this.#child = child;
  }

  /**
   * @param {Launch & { port?: number, name: string }} launch `port`: it says nothing; it is ready when that port answers
   */
  static async start(launch) {
    const child = start(launch);
    const subject = new SubjectProcess(child);
    try {
      if (launch.port === undefined) subject.port = (await firstMessage(child)).port;
      else await answering((subject.port = launch.port), child);
    } catch (error) {
      await stop(child);
      throw new Error(`${launch.name}: ${String(error)}`, { cause: error });
    }
    return subject;
  }

  /** @returns {Promise<number>} CPU time so far in ms; NaN where it cannot be known */
  async cpu() {
    if (hasSchedstat) return cpuMs(this.#child.pid);
    return (await this.#report()).ms;
  }

  /** @returns {Promise<number>} KiB */
  async rss() {
    if (process.platform === "linux") return rssKib(this.#child.pid);
    return (await this.#report()).rss / 1024;
  }

  async #report() {
    if (!this.#child.connected) return { ms: Number.NaN, rss: Number.NaN };
    const answer = once(this.#child, "message");
    this.#child.send({ type: "cpu" });
    return (await answer)[0];
  }

  stop() {
    return stop(this.#child);
  }
}

/** @param {number} port @param {import("node:child_process").ChildProcess} child */
async function answering(port, child) {
  for (let waited = 0; waited < startTimeoutMs; waited += 50) {
    if (child.exitCode !== null) throw new Error(`ended with code ${child.exitCode}`);
    const open = await new Promise((resolve) => {
      const socket = connect({ port, host: "127.0.0.1" });
      socket.on("connect", () => resolve(true)).on("error", () => resolve(false));
      socket.on("connect", () => socket.destroy());
    });
    if (open) return;
    await delay(50);
  }
  throw new Error("did not start");
}
