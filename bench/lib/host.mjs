/** The machine: which cores there are, what a process has used, what it is called. */

import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { cpus, loadavg, release, totalmem, type } from "node:os";

/** @param {string} path @returns {string | undefined} */
function read(path) {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined;
  }
}

/** Whether CPU time can be read per thread from the kernel, for any process. */
export const hasSchedstat = read("/proc/self/schedstat") !== undefined;

/** @typedef {{ load: number, subject: number }} Cores */

/**
 * The core of provider and client, and that of the subject.
 *
 * @returns {Cores | undefined} undefined without taskset or with a single core
 */
export function findCores() {
  const list = /^Cpus_allowed_list:\s*(\S+)/m.exec(read("/proc/self/status") ?? "")?.[1];
  if (list === undefined || spawnSync("taskset", ["-V"]).status !== 0) return undefined;
  const cores = list.split(",").flatMap((range) => {
    const [from = 0, to = from] = range.split("-").map(Number);
    return Array.from({ length: to - from + 1 }, (_, index) => from + index);
  });
  const [load, subject] = cores;
  return load === undefined || subject === undefined ? undefined : { load, subject };
}

/** Moves this process, all threads of it, to a core. @param {number} core */
export function pinSelf(core) {
  spawnSync("taskset", ["-a", "-c", "-p", String(core), String(process.pid)]);
}

/** The process and all that it has started. @param {number} pid @returns {number[]} */
function family(pid) {
  const children = (read(`/proc/${pid}/task/${pid}/children`) ?? "").split(" ").filter(Boolean).map(Number);
  return [pid, ...children.flatMap(family)];
}

/** On-CPU time of all threads of a process and its children, in ms. @param {number} pid */
export function cpuMs(pid) {
  let nanoseconds = 0;
  for (const member of family(pid)) {
    for (const thread of readdirSync(`/proc/${member}/task`)) {
      // A thread may end while we look.
      nanoseconds += Number((read(`/proc/${member}/task/${thread}/schedstat`) ?? "0").split(" ")[0]);
    }
  }
  return nanoseconds / 1e6;
}

/** Resident memory of a process and its children, in KiB. @param {number} pid */
export function rssKib(pid) {
  let kib = 0;
  for (const member of family(pid))
    kib += Number(/^VmRSS:\s*(\d+)/m.exec(read(`/proc/${member}/status`) ?? "")?.[1] ?? 0);
  return kib;
}

export function machine() {
  const all = cpus();
  return {
    cpu: all[0]?.model.trim() ?? "unknown",
    cores: all.length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    system: `${type()} ${release()}`,
    load: loadavg()[0] ?? 0,
  };
}
