// Lints what would be published: publint for the package.json and the files, attw for the types of every entry.
import { packAll } from "./packages.mjs";
import { run } from "./pnpm.mjs";

for (const { tarball } of packAll()) {
  run("publint", ["run", "--strict", tarball]);
  // ESM only: `require()` of an ES module works from Node 20.19 on, and check-tarballs.mjs proves it.
  run("attw", [tarball, "--profile", "esm-only", "--format", "ascii", "--no-summary", "--no-emoji", "--no-color"]);
}
