/**
 * `npm run bench`: every subject in turn, in a random order, round by round. `--help` says the options.
 *
 * The subject has a core for itself; provider, load client and this process share another. All that is compared is CPU
 * time of the operating system over all threads, as the median of ratios within one round.
 */

import { parseArgs } from "node:util";
import { holds, measured, readBounds, valueOf } from "./lib/bounds.mjs";
import { prepare, subjects as catalog } from "./lib/catalog.mjs";
import { startLoadClient, startProvider, SubjectProcess } from "./lib/children.mjs";
import { findCores, hasSchedstat, machine, pinSelf } from "./lib/host.mjs";
import { findNode, nodeVersion } from "./lib/peers.mjs";
import { saveRun, writeReport } from "./lib/report.mjs";
import { idle, scenarios, variant, warmUp } from "./lib/scenarios.mjs";
import { randomFrom, shuffled } from "./lib/statistics.mjs";

const usage = `npm run bench -- [options]

  --quick          fewer and shorter rounds: under six minutes; with --check under three
  --check          compare with bench/bounds.json; exit code 1 where a bound does not hold
  --only=<regex>   the subjects whose id or label matches, and bare dispatch, which all ratios need
  --scenarios=<regex>  those of the scenarios
  --rounds=<n>     default 5; with --quick 2, with --quick --check 5
  --seed=<n>       of the order of the visits; default: the time
  --cpu-prof=<dir> a CPU profile of each Node subject, for \`node bench/profile.mjs <file>\`; the figures are slower for it
  --no-memory      without the idle streams
  --no-report      leave docs/benchmarks.md as it is (as do --check --quick, --only and the like)
`;

const { values: args } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    check: { type: "boolean", default: false },
    only: { type: "string" },
    scenarios: { type: "string" },
    rounds: { type: "string" },
    seed: { type: "string" },
    "cpu-prof": { type: "string" },
    "no-memory": { type: "boolean", default: false },
    "no-report": { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});

const quickCheck = args.quick && args.check;
/**
 * What the quick check looks at: CPU ratios. The first byte is a matter of microseconds, and memory and growth one of many
 * sockets; a shared machine can tell neither.
 */
const quickBounds = readBounds().filter((bound) => bound.quick !== undefined);

/** @type {import("./lib/scenarios.mjs").Effort} */
const full = {
  rounds: 5,
  firstWarmUp: 20_000,
  warmUp: 12_000,
  shortMs: 1000,
  variantMs: 600,
  pacedMs: 1500,
  bulkWarmUpMs: 500,
  bulkMs: 700,
  pairs: 400,
  memoryRounds: 3,
};
/** @type {import("./lib/scenarios.mjs").Effort} */
const quick = {
  rounds: 2,
  firstWarmUp: 8000,
  warmUp: 4000,
  shortMs: 500,
  variantMs: 300,
  pacedMs: 700,
  bulkWarmUpMs: 300,
  bulkMs: 300,
  pairs: 150,
  memoryRounds: 1,
};

function effort() {
  const chosen = args.quick ? { ...quick } : { ...full };
  if (quickCheck) chosen.rounds = 5;
  if (args.rounds !== undefined) chosen.rounds = Number(args.rounds);
  return chosen;
}

function chosenSubjects() {
  const only = args.only === undefined ? undefined : new RegExp(args.only);
  const matching = catalog.filter(({ id, label }) => only === undefined || only.test(id) || only.test(label));
  const needed = new Set(matching.map(({ node }) => `dispatch@${node}`));
  return catalog.filter((subject) => {
    if (quickCheck && !quickBounds.some(({ of, over }) => of === subject.id || over === subject.id)) return false;
    return matching.includes(subject) || needed.has(subject.id);
  });
}

/** Whether a scenario, or a variant of the short one, is part of this run. @param {string} name @param {string} subject */
function isMeasured(name, subject) {
  if (args.scenarios !== undefined) return new RegExp(args.scenarios).test(name);
  return (
    !quickCheck ||
    quickBounds.some((bound) => bound.scenario === name && (bound.of === subject || bound.over === subject))
  );
}

/** Load of the machine before the run, above which the page says that others were at work. */
const quietLoad = 0.8;

class Run {
  effort = effort();
  seed = args.seed === undefined ? Date.now() % 1e9 : Number(args.seed);
  cores = findCores();
  /** @type {import("./lib/bounds.mjs").Entry[]} */
  entries = [];
  /** @type {{ id: string, label: string, reason: string }[]} */
  skipped = [];
  /** @type {string[]} */
  errors = [];
  /** @type {Map<string, string>} */
  versions = new Map();
  /** @type {Map<string, { subject: import("./lib/catalog.mjs").Subject, ready: import("./lib/catalog.mjs").Ready, process?: SubjectProcess }>} */
  taking = new Map();

  async all() {
    if (this.cores !== undefined) pinSelf(this.cores.load);
    this.provider = await startProvider(this.cores?.load);
    this.client = await startLoadClient(this.cores?.load);
    try {
      await this.prepare();
      await this.startAll();
      const random = randomFrom(this.seed);
      for (let round = 1; round <= this.effort.rounds; round += 1) await this.round(round, random);
      await this.stopAll();
      if (!args["no-memory"] && !quickCheck && isMeasured("idle", "")) await this.memory(random);
    } finally {
      await this.stopAll();
      await Promise.all([this.client.stop(), this.provider.stop()]);
    }
  }

  async prepare() {
    for (const subject of chosenSubjects()) {
      const { id, label } = subject;
      if (subject.kind === "direct") continue;
      const ready = await prepare(subject, this.provider.port, this.cores?.subject);
      if (typeof ready === "string") this.skip(id, label, ready);
      else {
        if (args["cpu-prof"] !== undefined && subject.script !== undefined) {
          ready.launch.args = [
            "--cpu-prof",
            `--cpu-prof-dir=${args["cpu-prof"]}`,
            `--cpu-prof-name=${id}.cpuprofile`,
            ...ready.launch.args,
          ];
        }
        this.taking.set(id, { subject, ready });
        this.versions.set(id, ready.version);
      }
    }
    for (const [id, { subject }] of this.taking) if (subject.ours === true) say(`takes part: ${id}`);
  }

  skip(id, label, reason) {
    this.skipped.push({ id, label, reason });
    say(`left out: ${id}: ${reason}`);
  }

  async startAll() {
    for (const [id, taking] of this.taking) {
      try {
        taking.process = await SubjectProcess.start(taking.ready.launch);
        await warmUp(this.bench, visited(taking), this.effort.firstWarmUp);
      } catch (error) {
        await taking.process?.stop();
        this.taking.delete(id);
        if (taking.subject.ours === true || id.startsWith("dispatch@")) throw error;
        this.skip(id, taking.subject.label, error instanceof Error ? error.message : String(error));
      }
    }
  }

  async stopAll() {
    await Promise.all([...this.taking.values()].map(async ({ process: child }) => child?.stop()));
  }

  get bench() {
    return { effort: this.effort, client: this.client, provider: this.provider };
  }

  async round(round, random) {
    say(`round ${round} of ${this.effort.rounds}`);
    const direct = chosenSubjects().find(({ kind }) => kind === "direct");
    const visits = [...this.taking.values()].map((taking) => visited(taking));
    if (direct !== undefined) visits.push({ ...nobody, subject: direct, port: this.provider.port });
    for (const visit of shuffled(visits, random)) {
      const { subject } = visit;
      await this.guard(subject.id, async () => {
        await warmUp(this.bench, visit, this.effort.warmUp);
        for (const name of subject.scenarios.filter((one) => isMeasured(one, subject.id))) {
          this.note(round, subject.id, name, await scenarios[name](this.bench, visit));
        }
        for (const one of subject.variants?.filter(({ id }) => isMeasured(id, subject.id)) ?? []) {
          this.note(round, subject.id, one.id, await variant(this.bench, visit, one));
        }
      });
    }
  }

  async memory(random) {
    const measuredHere = [...this.taking.values()].filter(({ subject }) => subject.memory === true);
    for (let round = 1; round <= this.effort.memoryRounds; round += 1) {
      say(`idle streams, round ${round} of ${this.effort.memoryRounds}`);
      for (const taking of shuffled(measuredHere, random)) {
        await this.guard(taking.subject.id, async () => {
          const child = await SubjectProcess.start(taking.ready.launch);
          try {
            const visit = visited({ ...taking, process: child });
            this.note(round, taking.subject.id, "idle", await idle(this.bench, visit));
          } finally {
            await child.stop();
          }
        });
      }
    }
  }

  note(round, subject, scenario, figures) {
    this.entries.push({ round, subject, scenario, figures });
  }

  async guard(id, work) {
    try {
      await work();
    } catch (error) {
      const message = `${id}: ${String(error)}`;
      this.errors.push(message);
      say(`ERROR ${message}`);
      // What is still open of this visit must not reach into the next.
      this.provider.finishIdle();
      await this.client.ask("settle", {}).catch(() => undefined);
    }
  }
}

const nobody = { headers: {}, cpu: () => Promise.resolve(0), rss: () => Promise.resolve(0) };

function visited({ subject, ready, process: child }) {
  return { subject, headers: ready.headers, port: child.port, cpu: () => child.cpu(), rss: () => child.rss() };
}

function say(text) {
  console.error(text);
}

/** The medians, for whoever watches. */
function print(entries) {
  const names = ["short", "paced", "bulk", "ttft", "held", "anthropic", "renamed"];
  console.log(`\n${"CPU in µs".padEnd(20)}${names.map((name) => name.padStart(10)).join("")}`);
  for (const { id } of catalog) {
    const cells = names.map((name) => {
      const metric =
        name === "ttft" ? "addedP50Us" : name === "paced" || name === "bulk" ? "cpuUsPerEvent" : "cpuUsPerStream";
      return (valueOf(entries, id, name, metric)?.median.toFixed(2) ?? "").padStart(10);
    });
    if (cells.some((cell) => cell.trim() !== "")) console.log(id.padEnd(20) + cells.join(""));
  }
}

/** @returns {boolean} */
function check(entries) {
  let ok = true;
  console.log(`\nBounds${quickCheck ? " of the quick check" : ""}:`);
  for (const bound of readBounds()) {
    if (quickCheck && bound.quick === undefined) continue;
    const found = measured(entries, bound);
    const limit = quickCheck ? bound.quick : (bound.max ?? bound.min);
    const wanted = `${bound.max === undefined ? "≥" : "≤"} ${limit}${bound.unit === undefined ? "" : ` ${bound.unit}`}`;
    if (found === undefined) {
      console.log(`  not measured  ${bound.figure}: ${wanted}`);
      continue;
    }
    const good = holds(bound, found.median, quickCheck);
    ok &&= good;
    const spread = `${found.low.toFixed(2)} to ${found.high.toFixed(2)}, ${found.count} rounds`;
    console.log(
      `  ${good ? "holds       " : "DOES NOT HOLD"} ${bound.figure}: ${found.median.toFixed(2)} (${spread}), wanted ${wanted}`,
    );
  }
  return ok;
}

async function main() {
  if (args.help) return console.log(usage);
  const run = new Run();
  if (run.cores === undefined)
    say("No taskset, or a single core: nothing is pinned, and the figures are noisier for it.");
  if (!hasSchedstat) say("No /proc/<pid>/task/*/schedstat: CPU time is what Node reports of itself.");
  const startedAt = performance.now();
  const before = machine();
  if (before.load > quietLoad) say(`The machine is busy (load ${before.load}): wait, or do not believe the figures.`);
  await run.all();
  const facts = {
    command: ["npm run bench", ...(process.argv.length > 2 ? ["--", ...process.argv.slice(2)] : [])].join(" "),
    date: new Date().toISOString().slice(0, 16).replace("T", " "),
    seconds: Math.round((performance.now() - startedAt) / 1000),
    seed: run.seed,
    effort: run.effort,
    machine: before,
    busy: before.load > quietLoad,
    cores: run.cores,
    hasSchedstat,
    nodes: [20, 24]
      .map((major) => findNode(major))
      .filter((path) => path !== undefined)
      .map(nodeVersion),
    versions: Object.fromEntries(run.versions),
    skipped: run.skipped,
    errors: run.errors,
    quick: args.quick,
  };
  saveRun(facts, run.entries);
  if (
    !quickCheck &&
    args.only === undefined &&
    args.scenarios === undefined &&
    args["cpu-prof"] === undefined &&
    !args["no-report"]
  )
    writeReport(facts, run.entries);
  print(run.entries);
  const ok = check(run.entries);
  if (run.errors.length > 0)
    say(`\n${run.errors.length} errors; no figure of this run counts:\n${run.errors.join("\n")}`);
  process.exitCode = run.errors.length > 0 || (args.check && !ok) ? 1 : 0;
  return undefined;
}

await main();
