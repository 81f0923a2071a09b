// Installs the packed packages with plain npm into an empty folder, next to each supported framework major, and loads
// every entry with `import` and with `require()`. It finds what a workspace hides: a file that is not packed, a
// dependency that is not declared, a `workspace:` range that is not rewritten.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packAll, temporaryFolder } from "./packages.mjs";
import { root, run } from "./pnpm.mjs";

const frameworks = [
  ["express@5", "koa@3"],
  ["express@4.18.2", "koa@2.13.0"],
];

const tarballs = packAll();
const entries = tarballs.flatMap(({ name }) => {
  const manifest = JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8"));
  return Object.keys(manifest.exports).map((entry) => manifest.name + entry.slice(1));
});

for (const versions of frameworks) {
  const folder = temporaryFolder("first-chunk-tarballs-");
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true }));
  const sources = [...tarballs.map(({ tarball }) => tarball), ...versions];
  run("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts", ...sources], { cwd: folder, quiet: true });

  const load = { "load.mjs": "await import(entry, options)", "load.cjs": "require(entry)" };
  for (const [file, expression] of Object.entries(load)) {
    writeFileSync(join(folder, file), program(expression));
    run(process.execPath, ["--no-warnings", file], { cwd: folder });
  }
  console.log(`ok: ${entries.length} entries by import and by require(), next to ${versions.join(" and ")}`);
}

/** A program that loads every entry and fails when one does not load or has no exports. */
function program(expression) {
  return `
    async function main() {
      for (const entry of ${JSON.stringify(entries)}) {
        const options = entry.endsWith(".json") ? { with: { type: "json" } } : {};
        const loaded = ${expression};
        if (Object.keys(loaded).length === 0) throw new Error(entry + " exports nothing");
      }
    }
    main().catch((error) => {
      console.error(error);
      process.exitCode = 1;
    });
  `;
}
