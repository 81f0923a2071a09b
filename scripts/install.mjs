// Installs the workspace with the pinned pnpm, unless node_modules already matches the lockfile. Every script in
// package.json starts with this, so that `npm test` works in a fresh clone and costs nothing the second time.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pnpm, root } from "./pnpm.mjs";

const modules = join(root, "node_modules");
const stamp = join(modules, ".first-chunk-install");

// The stamp covers all that an install depends on. With the lockfile alone, a dependency that was added to a package.json
// by hand would be reported as a missing module, and not as a lockfile that is out of date.
const folders = [".", "examples", "bench", ...readdirSync(join(root, "packages")).map((name) => `packages/${name}`)];
const files = ["pnpm-lock.yaml", "pnpm-workspace.yaml", ...folders.map((folder) => `${folder}/package.json`)];
const hash = createHash("sha256").update(`${process.platform} ${process.arch}`);
for (const file of files.map((name) => join(root, name)).filter((path) => existsSync(path))) {
  hash.update(readFileSync(file));
}
const wanted = hash.digest("hex");

// A plain `npm install` leaves .package-lock.json, and a tree that pnpm asks about before it replaces it.
const madeByNpm = existsSync(join(modules, ".package-lock.json"));
const madeByPnpm = existsSync(join(modules, ".modules.yaml")) && !madeByNpm;

if (!madeByPnpm || !existsSync(stamp) || readFileSync(stamp, "utf8") !== wanted) {
  if (!madeByPnpm) rmSync(modules, { recursive: true, force: true });
  pnpm(["install", "--frozen-lockfile", "--config.confirm-modules-purge=false"]);
  writeFileSync(stamp, wanted);
}
