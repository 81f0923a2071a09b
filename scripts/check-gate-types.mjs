// The gate must compile with web types alone, and no dependency may bring Node's types back in through the side door.
import { run } from "./pnpm.mjs";

const project = ["-p", "packages/core/tsconfig.gate.json"];
run("tsc", project);

const files = run("tsc", [...project, "--listFilesOnly"], { quiet: true }).split("\n");
const nodeTypes = files.filter((file) => /[\\/](@types[\\/]node|undici-types)[\\/]/.test(file));
if (nodeTypes.length > 0) {
  console.error(`packages/core/src/gate pulls in Node's types:\n  ${nodeTypes.slice(0, 5).join("\n  ")}`);
  process.exitCode = 1;
}
