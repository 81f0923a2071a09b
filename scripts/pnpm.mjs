// Runs the pinned pnpm through npx, so that neither a global pnpm nor corepack is needed.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("..", import.meta.url));

const { packageManager } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));

/** Runs `pnpm ...args`; ends this process when it fails. */
export function pnpm(args, options) {
  run("npx", ["--yes", packageManager, ...args], options);
}

/** Runs a command; ends this process when it fails. With `quiet` its output is shown only then, and returned. */
export function run(command, args, { cwd = root, quiet = false } = {}) {
  // Under `npx -p node@22 -c "npm test"` these two would make every npx in here run that command again.
  const env = { ...process.env };
  delete env.npm_config_call;
  delete env.npm_config_package;
  const { status, error, stdout, stderr } = spawnSync(command, args, {
    cwd,
    env,
    stdio: ["ignore", quiet ? "pipe" : "inherit", quiet ? "pipe" : "inherit"],
    encoding: "utf8",
    // npm, npx and package binaries are .cmd files on Windows, which Node starts only through a shell.
    shell: process.platform === "win32" && command !== process.execPath,
    maxBuffer: 64 * 1024 * 1024,
  });
  if (error !== undefined || status !== 0) {
    if (quiet) process.stderr.write(`${stdout ?? ""}${stderr ?? ""}`);
    console.error(`${command} ${args.join(" ")}: ${error?.message ?? `exit code ${status}`}`);
    process.exit(1);
  }
  return stdout ?? "";
}
