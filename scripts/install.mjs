// Installs the workspace with the pinned pnpm, unless node_modules already matches the lockfile. Every script in
// package.json starts with this, so that `npm test` works in a fresh clone and costs nothing the second time.
import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { pnpm, root } from "./pnpm.mjs";

const modules = `${root}/node_modules`;
const stamp = `${modules}/.first-chunk-install`;

// The stamp covers what an install depends on, not the lockfile alone: a changed setting must install again too.
const inputs = ["pnpm-lock.yaml", "pnpm-workspace.yaml"].map((file) => readFileSync(`${root}/${file}`));
const wanted = createHash("sha256").update(Buffer.concat(inputs)).update(process.arch).digest("hex");

// A plain `npm install` in the root leaves .package-lock.json and removes pnpm's links, but not our stamp.
const madeByNpm = existsSync(`${modules}/.package-lock.json`);
const madeByPnpm = existsSync(`${modules}/.modules.yaml`) && existsSync(`${modules}/typescript`);
const current = !madeByNpm && madeByPnpm && existsSync(stamp) && readFileSync(stamp, "utf8") === wanted;

if (!current) {
  if (existsSync(modules) && (madeByNpm || !madeByPnpm)) rmSync(modules, { recursive: true });
  pnpm(["install", "--frozen-lockfile", "--config.confirm-modules-purge=false"]);
  writeFileSync(stamp, wanted);
}
