/** The run as a page with tables and plots, and its records as JSON. */

import { spawnSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { compare, holds, measured, readBounds, valueOf } from "./bounds.mjs";
import { subjects as catalog } from "./catalog.mjs";
import { svgPlot } from "./plot.mjs";

const docs = fileURLToPath(new URL("../../docs/", import.meta.url));
const formatter = fileURLToPath(new URL("../../node_modules/oxfmt/bin/oxfmt", import.meta.url));
const records = fileURLToPath(new URL("../../node_modules/.cache/first-chunk-bench/", import.meta.url));

/** All records, for whoever wants other figures out of them. */
export function saveRun(facts, entries) {
  mkdirSync(records, { recursive: true });
  writeFileSync(`${records}last-run.json`, JSON.stringify({ facts, entries }, undefined, 1));
}

export function writeReport(facts, entries) {
  mkdirSync(`${docs}benchmarks`, { recursive: true });
  for (const { file, plot } of plots(entries)) writeFileSync(`${docs}benchmarks/${file}`, svgPlot(plot));
  writeFileSync(`${docs}benchmarks.md`, page(facts, entries));
  // As all files of the repository are formatted; without it the page is only less even.
  spawnSync(process.execPath, [formatter, `${docs}benchmarks.md`]);
}

/** @param {number} value */
function digits(value) {
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}

/** Median, with the least and the greatest round. @param {import("./statistics.mjs").Summary | undefined} found */
function cell(found) {
  if (found === undefined) return "–";
  const { median, low, high, count } = found;
  return count === 1 ? digits(median) : `${digits(median)} (${digits(low)}–${digits(high)})`;
}

function plain(found) {
  return found === undefined ? "–" : digits(found.median);
}

/** Subjects that were measured, in the order of the catalog. */
function present(entries) {
  const seen = new Set(entries.map(({ subject }) => subject));
  return catalog.filter(({ id }) => seen.has(id));
}

/** Ratios are to bare dispatch on the same Node; for what is no Node program, on Node 20. */
function referenceOf({ node }) {
  return `dispatch@${node ?? 20}`;
}

function ratio(entries, subject, scenario, metric) {
  return compare(entries, scenario, metric, subject.id, referenceOf(subject));
}

function table(head, rows) {
  const line = (cells) => `| ${cells.join(" | ")} |`;
  return [line(head), line(head.map((_, index) => (index === 0 ? "---" : "---:"))), ...rows.map(line)].join("\n");
}

function mainTable(entries) {
  const rows = present(entries).map((subject) => {
    const { id, label, ours } = subject;
    return [
      ours ? `**${label}**` : label,
      plain(valueOf(entries, id, "short", "cpuUsPerStream")),
      cell(ratio(entries, subject, "short", "cpuUsPerStream")),
      plain(valueOf(entries, id, "short", "streamsPerSecond")),
      plain(valueOf(entries, id, "paced", "cpuUsPerEvent")),
      cell(ratio(entries, subject, "paced", "cpuUsPerEvent")),
      plain(valueOf(entries, id, "bulk", "cpuUsPerEvent")),
      cell(ratio(entries, subject, "bulk", "cpuUsPerEvent")),
      plain(valueOf(entries, id, "ttft", "addedP50Us")),
    ];
  });
  const head = [
    "subject",
    "short: µs",
    "÷ dispatch",
    "streams/s",
    "paced: µs",
    "÷ dispatch",
    "bulk: µs",
    "÷ dispatch",
    "added TTFT p50, µs",
  ];
  return table(head, rows);
}

function variantTable(entries) {
  const rows = present(entries).flatMap((subject) =>
    (subject.variants ?? []).map(({ id, label }) => {
      const over = (a, b) => a / b;
      const own = joined(entries, subject.id, id, subject.id, "short", over);
      return [`${subject.label}: ${label}`, plain(valueOf(entries, subject.id, id, "cpuUsPerStream")), cell(own)];
    }),
  );
  return table(["short stream of another kind", "µs", "÷ the plain short stream"], rows);
}

/** One metric of two scenarios, round by round. */
function joined(entries, of, scenario, over, otherScenario, combine) {
  const renamed = entries
    .filter((entry) => entry.subject === over && entry.scenario === otherScenario)
    .map((entry) => ({ ...entry, scenario, subject: "reference" }));
  return compare(
    [...entries.filter(({ subject }) => subject === of), ...renamed],
    scenario,
    "cpuUsPerStream",
    of,
    "reference",
    combine,
  );
}

function memoryTable(entries) {
  const rows = present(entries)
    .filter(({ memory }) => memory === true)
    .map(({ id, label }) => [
      label,
      ...["baseMib", "kibPerStream2000", "kibPerStream5000", "growth"].map((metric) =>
        cell(valueOf(entries, id, "idle", metric)),
      ),
    ]);
  const head = [
    "subject",
    "without streams, MiB",
    "KiB a stream at 2,000",
    "KiB a stream at 5,000",
    "short stream beside 5,000 ÷ beside none",
  ];
  return table(head, rows);
}

function boundTable(entries) {
  const rows = readBounds().map((bound) => {
    const found = measured(entries, bound);
    const sign = bound.max === undefined ? "≥" : "≤";
    const unit = bound.unit === undefined ? "" : ` ${bound.unit}`;
    const verdict = found === undefined ? "not measured" : holds(bound, found.median, false) ? "holds" : "**missed**";
    return [
      bound.figure,
      cell(found),
      `${sign} ${bound.max ?? bound.min}${unit}`,
      `${sign} ${bound.goal}${unit}`,
      verdict,
    ];
  });
  return table(["figure", "median (least–greatest round)", "bound", "goal", ""], rows);
}

function plots(entries) {
  const rowsOf = (scenario, metric, unit) =>
    present(entries)
      .map((subject) => ({
        subject,
        found: ratio(entries, subject, scenario, metric),
        own: valueOf(entries, subject.id, scenario, metric),
      }))
      .filter(({ subject, found }) => found !== undefined && found.median > 0 && subject.kind !== "direct")
      .toSorted((a, b) => a.found.median - b.found.median)
      .map(({ subject, found, own }) => ({
        label: subject.label,
        summary: found,
        ours: subject.ours === true,
        text: `${digits(found.median)} × (${plain(own)} ${unit})`,
      }));
  const latency = present(entries)
    .map((subject) => ({ subject, found: valueOf(entries, subject.id, "ttft", "addedP50Us") }))
    .filter(({ found }) => found !== undefined && found.low > 0)
    .toSorted((a, b) => a.found.median - b.found.median)
    .map(({ subject, found }) => ({
      label: subject.label,
      summary: found,
      ours: subject.ours === true,
      text: `${digits(found.median)} µs`,
    }));
  const against = "÷ bare undici dispatch on the same Node, logarithmic; dot: median, line: least to greatest round";
  return [
    {
      file: "short.svg",
      plot: {
        title: "CPU per short stream",
        subtitle: against,
        rows: rowsOf("short", "cpuUsPerStream", "µs"),
        reference: 1,
      },
    },
    {
      file: "paced.svg",
      plot: {
        title: "CPU per paced event",
        subtitle: against,
        rows: rowsOf("paced", "cpuUsPerEvent", "µs"),
        reference: 1,
      },
    },
    {
      file: "bulk.svg",
      plot: {
        title: "CPU per bulk event",
        subtitle: against,
        rows: rowsOf("bulk", "cpuUsPerEvent", "µs"),
        reference: 1,
      },
    },
    {
      file: "ttft.svg",
      plot: {
        title: "Added time to first byte, p50",
        subtitle: "µs against a direct connection, logarithmic",
        rows: latency,
      },
    },
  ].filter(({ plot }) => plot.rows.length > 0);
}

function page(facts, entries) {
  const { machine, cores, effort } = facts;
  const pinned =
    cores === undefined
      ? "Nothing is pinned (no taskset, or one core)"
      : `Provider and load client on core ${cores.load}, the subject alone on core ${cores.subject}`;
  const cpu = facts.hasSchedstat
    ? "on-CPU time of all threads from `/proc/<pid>/task/*/schedstat`"
    : "`process.cpuUsage()` of the subject";
  const left = facts.skipped.map(({ label, reason }) => `- ${label}: ${reason}`);
  const versions = Object.entries(facts.versions)
    .filter(([, version]) => version !== "")
    .map(([id, version]) => `${id.split("@")[0]} ${version}`);
  const figure = (file, alt) => `![${alt}](benchmarks/${file})`;
  return `# Benchmarks

Made by \`${facts.command}\` on ${facts.date} UTC in ${facts.seconds} s; seed ${facts.seed}, ${effort.rounds} rounds${facts.quick ? ". **A quick run: few and short rounds, only good for a first look**" : ""}.${facts.busy ? " **Others used the machine at the same time: no figure of this run counts.**" : ""}${facts.errors.length > 0 ? `\n\n**${facts.errors.length} errors: no figure of this run counts.**` : ""}

${machine.cpu}, ${machine.cores} cores, ${machine.memoryGib} GiB, ${machine.system}, load ${machine.load.toFixed(1)} before the run. Node ${facts.nodes.join(" and ")}${versions.length > 0 ? `; ${[...new Set(versions)].join(", ")}` : ""}.

## Bounds

${boundTable(entries)}

## All subjects

${mainTable(entries)}

µs of CPU: per short stream, per paced event, per bulk event. Medians; in brackets the least and the greatest round. Ratios are taken within a round, to bare dispatch on the same version of Node (for nginx and HAProxy: Node 20).

${figure("short.svg", "CPU per short stream")}

${figure("paced.svg", "CPU per paced event")}

${figure("bulk.svg", "CPU per bulk event")}

${figure("ttft.svg", "Added time to first byte")}

## What the gate has to do

${variantTable(entries)}

## Idle streams

${memoryTable(entries)}

The first event is delivered, then the provider is silent. Memory is the growth of the resident set of a fresh process.

## How it is measured

- A scripted provider and a load client, both on raw sockets with bytes made beforehand, in processes of their own. Every byte that a client gets is compared with what the provider sent; one wrong byte fails the run.
- ${pinned}. CPU is ${cpu}.
- \`short\`: 20 content events, a finish reason, usage and \`[DONE]\`, about 250 bytes each, in one packet; 64 connections, each sends its next request when its stream has ended.
- \`paced\`: 250 streams, an event each 20 ms, each a packet of its own.
- \`bulk\`: 5,003 events as fast as they go, 8 connections.
- Added TTFT: one stream at a time, by turns direct and through the subject; the median difference of the pairs.
- Each round visits all subjects in a random order; each visit begins with a warm-up, and so does the bulk scenario in it. Streams end by themselves.
- Bare dispatch is the least that relays a stream with undici: a buffered body, a handler that writes each chunk as it comes, back-pressure, an abort when the client leaves. It looks at nothing. Ours has the gate and the watch after release on.
- \`http-proxy-middleware\` 4 asks for Node 22.15 in its \`engines\` and is fetched when the benchmark runs; it works on Node 20.19. Portkey is fetched in the same way, with \`@hono/node-server\` 1.13.8: with later ones it answers 500 on Node 20.

Absolute figures move by 15 % and more between runs on a virtual machine; compare ratios. Again: \`npm run bench\`. \`npm run bench -- --check\` fails where a bound does not hold; \`--check --quick\` is for CI, with wider bounds (\`bench/bounds.json\`).
${left.length > 0 ? `\n## Left out of this run\n\n${left.join("\n")}\n` : ""}`;
}
