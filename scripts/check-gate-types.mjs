// The gate must compile with web types alone, and no dependency may bring Node's types back in through the side door.
import { run } from "./pnpm.mjs";

const listing = run(
  process.execPath,
  ["node_modules/typescript/bin/tsc", "-p", "packages/core/tsconfig.gate.json", "--listFiles"],
  { quiet: true },
);
const nodeTypes = listing.split("\n").filter((file) => /[\\/](@types[\\/]node|undici-types)[\\/]/.test(file));
if (nodeTypes.length > 0) {
  console.error(`packages/core/src/gate pulls in Node's types:\n  ${nodeTypes.slice(0, 5).join("\n  ")}`);
  process.exitCode = 1;
}
