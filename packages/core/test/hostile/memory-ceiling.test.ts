/** What one request may cost in memory, whatever either side does: SECURITY.md names the ceiling. */

import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { chunkedHead, chunked, openHead, output, pour, tcpProvider } from "./tcp-provider.js";
import type { Play } from "./tcp-provider.js";
import { chatBody, provider, world } from "./world.js";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const mebibyte = 1_048_576;
const maxRequestBytes = 2 * mebibyte;
const maxHeldBytes = mebibyte;
/** Of SECURITY.md. */
const constant = mebibyte;

async function memory(): Promise<number> {
  for (let round = 0; round < 4; round += 1) {
    await sleep(20);
    collectGarbage();
  }
  // What array buffers hold is part of `external`.
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const requests = 16;

/** Bytes a request, while so many of them stand as far as `play` takes them. */
async function costOf(
  play: Play,
  body: string,
  ready: (written: number) => boolean,
  pauseClients = false,
): Promise<number> {
  const upstream = await tcpProvider(play, false);
  const limits = { maxRequestBytes };
  const timeouts = { writeStallTimeoutMs: 60_000 };
  const { open, ended } = await world({
    gate: { maxHeldBytes, onOverflow: "fail", maxHeldEvents: 1_000_000 },
    limits,
    timeouts,
    providers: { p: provider(upstream.origin) },
  });
  const warm = await open({ body });
  if (pauseClients) warm.socket.pause();
  while (!ready(upstream.written)) await sleep(5);
  warm.leave();
  await ended(1);
  await upstream.closed();
  const before = await memory();
  const writtenBefore = upstream.written;
  const clients = await Promise.all(
    Array.from({ length: requests }, async () => {
      const client = await open({ body });
      if (pauseClients) client.socket.pause();
      return client;
    }),
  );
  while (upstream.requests.length <= requests || !ready((upstream.written - writtenBefore) / requests)) await sleep(5);
  await sleep(100);
  const after = await memory();
  for (const client of clients) client.leave();
  await ended(requests + 1);
  return (after - before) / requests;
}

const large = chatBody.replace('"hi"', JSON.stringify("x".repeat(maxRequestBytes - chatBody.length)));
const comments = `${openHead}${`: ${"x".repeat(998)}\n\n`.repeat(1000)}`;
const line = `${openHead}data: ${"x".repeat(1_000_000)}`;

it.each([
  ["comments", comments],
  ["one line", line],
])("pitfall 48: a large request that is held back with %s stays below the ceiling", async (_name, held) => {
  const cost = await costOf(
    (socket) => void socket.write(held),
    large,
    (written) => written >= held.length,
  );
  expect(cost).toBeLessThan(3 * maxRequestBytes + 2 * maxHeldBytes + constant);
});

it("a large request whose answer streams is kept once, by the HTTP client", async () => {
  const cost = await costOf(
    (socket) => void socket.write(openHead + output),
    large,
    (written) => written >= openHead.length,
  );
  expect(cost).toBeLessThan(maxRequestBytes + constant);
});

it("pitfall 61: a client that reads nothing of a fast stream costs no more than what is on its way", async () => {
  const fast: Play = (socket) => {
    socket.write(chunkedHead + chunked(output));
    pour(socket, chunked(`: ${"x".repeat(65_000)}\n\n`));
  };
  let last = -1;
  let same = 0;
  const stands = (written: number): boolean => {
    same = written === last && written > mebibyte ? same + 1 : 0;
    last = written;
    return same > 20;
  };
  // The sockets of both ends and of the provider are in this process, too.
  expect(await costOf(fast, chatBody, stands, true)).toBeLessThan(2 * constant);
});
