/**
 * What is not in this workspace: peers whose `engines` or dependencies have no place in its lockfile, and other versions
 * of Node. Fetched with npm when a run needs them, into a cache that nothing else reads. What cannot be had is left out
 * of the run, visibly.
 */

import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const cache = fileURLToPath(new URL("../../node_modules/.cache/first-chunk-bench/", import.meta.url));

/** Versions are exact, so that two runs measure the same. */
const packages = {
  // Its engines ask for Node 22.15, which the workspace (20.19) refuses to install. It does run on 20.19.
  "http-proxy-middleware": { dependencies: { "http-proxy-middleware": "4.2.2" } },
  // With the versions of @hono/node-server that its own range allows today it answers 500 to every stream on Node 20.
  "@portkey-ai/gateway": {
    dependencies: { "@portkey-ai/gateway": "1.15.2" },
    overrides: { "@hono/node-server": "1.13.8" },
  },
};

/** @param {string} command @param {readonly string[]} args @param {string} [cwd] */
function run(command, args, cwd) {
  // Under `npm run` these would reach the npm that is started here.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("npm_")));
  const shell = process.platform === "win32";
  const { status, stdout } = spawnSync(command, args, { cwd, env, shell, encoding: "utf8", timeout: 180_000 });
  return status === 0 ? stdout.trim() : undefined;
}

/**
 * @param {keyof typeof packages} name
 * @returns {{ folder: string, version: string } | undefined} undefined: it cannot be had
 */
export function findPeer(name) {
  const folder = join(cache, name.replaceAll("/", "+"));
  const manifest = join(folder, "node_modules", name, "package.json");
  const wanted = JSON.stringify({ private: true, ...packages[name] }, undefined, 2);
  const present = existsSync(manifest) && readFileSync(join(folder, "package.json"), "utf8") === wanted;
  if (!present) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), wanted);
    const options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    if (run("npm", ["install", ...options], folder) === undefined) return undefined;
  }
  return { folder, version: JSON.parse(readFileSync(manifest, "utf8")).version };
}

/** @param {number} major @returns {string | undefined} path of a binary of that version of Node */
export function findNode(major) {
  if (Number(process.versions.node.split(".")[0]) === major) return process.execPath;
  const known = join(cache, `node-${major}.path`);
  if (existsSync(known)) {
    const path = readFileSync(known, "utf8");
    if (existsSync(path)) return path;
  }
  const path = run("npx", ["--yes", "--package", `node@${major}`, "node", "-p", "process.execPath"]);
  if (path === undefined || !existsSync(path)) return undefined;
  mkdirSync(cache, { recursive: true });
  writeFileSync(known, path);
  return path;
}

/** @param {string} node @returns {string} version without the `v` */
export function nodeVersion(node) {
  return (run(node, ["-p", "process.versions.node"]) ?? "unknown").trim();
}

/** @param {string} command @returns {string | undefined} what it says of its version */
export function findCommand(command) {
  const { status, stdout, stderr } = spawnSync(command, ["-v"], { encoding: "utf8" });
  return status === 0 ? (/\d+\.\d+\.\d+/.exec(`${stdout}${stderr}`)?.[0] ?? "unknown") : undefined;
}

/** A port that nobody uses, for servers that must be told one. @returns {Promise<number>} */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
