// Runs the pinned pnpm through npx, so that neither a global pnpm nor corepack is needed.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("..", import.meta.url)).replace(/[\\/]$/, "");

const { packageManager } = JSON.parse(readFileSync(`${root}/package.json`, "utf8"));

/** Runs `pnpm ...args` in `cwd` and throws when it fails. */
export function pnpm(args, { cwd = root, quiet = false } = {}) {
  run("npx", ["--yes", packageManager, ...args], { cwd, quiet });
}

/** Runs a command and throws when it fails. `quiet` shows its output only then. */
export function run(command, args, { cwd = root, quiet = false } = {}) {
  const { status, error, stdout, stderr } = spawnSync(command, args, {
    cwd,
    stdio: quiet ? "pipe" : ["ignore", "inherit", "inherit"],
    encoding: "utf8",
    // npm and npx are .cmd files on Windows, which Node starts only through a shell.
    shell: process.platform === "win32" && !command.endsWith(".exe"),
  });
  if (error) throw error;
  if (status !== 0) {
    if (quiet) process.stderr.write(`${stdout}${stderr}`);
    throw new Error(`${command} ${args.join(" ")} ended with exit code ${status}`);
  }
  return stdout ?? "";
}
