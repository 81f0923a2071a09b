/** `npx @first-chunk/core explain FILE` */

import { readFile } from "node:fs/promises";
import { runCommand } from "./command.js";

async function readStandardInput(): Promise<Uint8Array> {
  const parts: Buffer[] = [];
  for await (const part of process.stdin) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

// A reader such as `head` may leave before everything is written.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});

const { exitCode, stdout, stderr } = await runCommand(process.argv.slice(2), (path) =>
  path === undefined ? readStandardInput() : readFile(path),
);
process.stdout.write(stdout);
process.stderr.write(stderr);
process.exitCode = exitCode;
