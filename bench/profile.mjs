/**
 * `node bench/profile.mjs <file.cpuprofile> [rows]`: where a subject spent its time from its first request on, by part, by
 * place and by function.
 */

import { readFileSync } from "node:fs";

const [file = "", rows = "30"] = process.argv.slice(2);
const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, "utf8"));

/** @type {Map<number, any>} */
const byId = new Map(nodes.map((node) => [node.id, node]));
const parents = new Map(nodes.flatMap((node) => (node.children ?? []).map((child) => [child, node.id])));
// What comes before is the loading of modules.
const begun = Math.max(
  0,
  samples.findIndex((id) => byId.get(id).callFrame.url === "node:_http_server"),
);
const self = new Map();
for (const [index, id] of samples.entries()) if (index >= begun) self.set(id, (self.get(id) ?? 0) + timeDeltas[index]);

/** @param {string} url */
function place(url) {
  const name = url.replace(/^file:\/\//, "");
  const packaged = /node_modules\/((?:@[^/]+\/)?[^/]+)\/(?!.*node_modules)/.exec(name);
  if (packaged !== null) return packaged[1];
  return /packages\/[^/]+\/(?:dist|src)\/.*$/.exec(name)?.[0] ?? name;
}

const engine = new Map([
  ["(garbage collector)", "garbage collection"],
  ["(program)", "outside JavaScript: event loop, reads from sockets, HTTP parser"],
  ["writev", "writes to sockets"],
  ["writeBuffer", "writes to sockets"],
  ["writeUtf8String", "writes to sockets"],
  ["writeLatin1String", "writes to sockets"],
]);

/** Native code counts for whoever called it. */
function part(id) {
  const { functionName, url } = byId.get(id).callFrame;
  if (url === "") {
    const parent = parents.get(id);
    return engine.get(functionName) ?? (parent === undefined ? "others" : part(parent));
  }
  const where = place(url);
  if (where.startsWith("node:")) return "Node: HTTP server, streams, timers";
  if (where === "undici" || where.startsWith("wasm:")) return "undici";
  if (where.startsWith("packages/core/dist/gate/")) return "First Chunk: the gate and the watch";
  return where.startsWith("packages/") ? "First Chunk: all else" : "others";
}

function total(map, key, value) {
  map.set(key, (map.get(key) ?? 0) + value);
}

const parts = new Map();
const functions = new Map();
const places = new Map();
let busy = 0;
for (const [id, time] of self) {
  const { functionName, url, lineNumber } = byId.get(id).callFrame;
  if (functionName === "(idle)") continue;
  busy += time;
  total(parts, part(id), time);
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

print("By part", parts);
print("By place", places);
print("By function", functions);
