/**
 * The matrix: Node 20, 22, 24 × Express 4, 5 and Koa 2, 3 × body parser × compression. Each cell runs a short battery over
 * real sockets (`matrix-battery.mjs`). Prints a table; fails when a cell fails.
 *
 *     npm run matrix
 *     npm run matrix -- 22          # one version
 *
 * Other versions than the running one come from the npm package `node`.
 */

import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const battery = fileURLToPath(new URL("matrix-battery.mjs", import.meta.url));
const wanted = process.argv.slice(2).filter((argument) => /^\d+$/.test(argument));
const versions = wanted.length > 0 ? wanted : ["20", "22", "24"];
const own = process.versions.node.split(".")[0];

/** The cells of one version, as the battery prints them: one JSON object a line. */
function runOn(version) {
  const [command, args] =
    version === own
      ? [process.execPath, [battery]]
      : ["npx", ["--yes", "--package", `node@${version}`, "node", battery]];
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], shell: process.platform === "win32" });
    let out = "";
    let errors = "";
    child.stdout.on("data", (data) => (out += data));
    child.stderr.on("data", (data) => (errors += data));
    child.on("error", (error) => resolve({ version, cells: [], problem: String(error) }));
    child.on("close", (code) => {
      const cells = out
        .split("\n")
        .filter((line) => line.startsWith("{"))
        .map((line) => JSON.parse(line));
      resolve({ version, cells, problem: code === 0 ? undefined : `exit code ${code}\n${errors.slice(-2000)}` });
    });
  });
}

const results = [];
// One after the other: the cells look at the clock.
for (const version of versions) results.push(await runOn(version));

const names = [...new Set(results.flatMap(({ cells }) => cells.map(({ cell }) => cell)))];
const width = Math.max(...names.map((name) => name.length), 4);
console.log(
  ["cell".padEnd(width), ...results.map(({ version, cells }) => (cells[0]?.node ?? `v${version}`).padEnd(10))].join(
    " | ",
  ),
);
console.log([width, ...results.map(() => 10)].map((length) => "-".repeat(length)).join("-|-"));
let passed = 0;
let failed = 0;
for (const name of names) {
  const row = results.map(({ cells }) => {
    const cell = cells.find((one) => one.cell === name);
    const ok = cell !== undefined && cell.failures.length === 0;
    if (ok) passed += 1;
    else failed += 1;
    return (ok ? `ok ${Math.round(cell.ms)} ms` : cell === undefined ? "missing" : "FAIL").padEnd(10);
  });
  console.log([name.padEnd(width), ...row].join(" | "));
}
for (const { version, cells, problem } of results) {
  if (problem !== undefined) console.log(`\nNode ${version}: ${problem}`);
  for (const { cell, failures } of cells)
    for (const failure of failures) console.log(`\nNode ${version}, ${cell}: ${failure}`);
}
console.log(`\n${passed} cells passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 && results.every(({ problem }) => problem === undefined) ? 0 : 1;
