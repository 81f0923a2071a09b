/** `node bench/profile.mjs <file.cpuprofile> [rows]`: where a subject spent its time, by function and by place. */

import { readFileSync } from "node:fs";

const [file = "", rows = "30"] = process.argv.slice(2);
const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, "utf8"));

/** @type {Map<number, any>} */
const byId = new Map(nodes.map((node) => [node.id, node]));
const self = new Map();
for (const [index, id] of samples.entries()) self.set(id, (self.get(id) ?? 0) + timeDeltas[index]);

/** @param {string} url */
function place(url) {
  const name = url.replace(/^file:\/\//, "");
  const packaged = /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules)/.exec(name);
  if (packaged !== null) return packaged[1];
  return /packages\/[^/]+\/(?:dist|src)\/.*$/.exec(name)?.[0] ?? name;
}

function total(map, key, value) {
  map.set(key, (map.get(key) ?? 0) + value);
}

const functions = new Map();
const places = new Map();
let busy = 0;
for (const [id, time] of self) {
  const { functionName, url, lineNumber } = byId.get(id).callFrame;
  if (functionName === "(idle)") continue;
  busy += time;
  const where = place(url) || "(native)";
  total(places, where, time);
  total(functions, `${functionName || "(anonymous)"}  ${where}${url === "" ? "" : `:${lineNumber + 1}`}`, time);
}

function print(title, map) {
  console.log(`\n${title}`);
  for (const [name, time] of [...map].toSorted((a, b) => b[1] - a[1]).slice(0, Number(rows))) {
    console.log(`${((100 * time) / busy).toFixed(1).padStart(6)} %  ${name}`);
  }
}

print("By function", functions);
print("By place", places);
