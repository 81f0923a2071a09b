// Removes what the build writes. `tsc -b` does not delete the output of a source file that was removed or renamed.
import { readdirSync, rmSync } from "node:fs";
import { root } from "./pnpm.mjs";

const packages = readdirSync(`${root}/packages`).map((name) => `packages/${name}`);
for (const folder of [...packages, "examples"]) {
  rmSync(`${root}/${folder}/dist`, { recursive: true, force: true });
}
