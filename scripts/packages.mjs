// The packages that are published, and how a tarball of each is made.
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pnpm, root } from "./pnpm.mjs";

export const published = ["core", "express", "koa"];

/** Packs every published package, as `pnpm publish` would, into a folder that is removed when the process ends. */
export function packAll() {
  const folder = temporaryFolder("first-chunk-pack-");
  for (const name of published) {
    pnpm(["pack", "--pack-destination", folder], { cwd: join(root, "packages", name), quiet: true });
  }
  const files = readdirSync(folder);
  return published.map((name) => {
    const file = files.find((candidate) => candidate.startsWith(`first-chunk-${name}-`));
    if (file === undefined) throw new Error(`pnpm pack left no tarball of ${name} in ${folder}`);
    return { name, tarball: join(folder, file) };
  });
}

export function temporaryFolder(prefix) {
  const folder = mkdtempSync(join(tmpdir(), prefix));
  process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
