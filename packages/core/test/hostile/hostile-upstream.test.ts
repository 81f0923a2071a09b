/** Providers that break every rule: each ends in a clear outcome, in bounded memory, and the next request is served. */

import { describe, expect, it } from "vitest";
import { afterOutput, asChunk, beforeOutput, event, pouring, write } from "./hostile-answers.js";
import { chunkedHead, done, healthyAnswer, openHead, output, preamble, tcpProvider } from "./tcp-provider.js";
import { provider, world } from "./world.js";

const heldBytes = 65_536;
/** What the kernel takes on both ends of a loopback connection, and undici reads at once, beyond what is held. */
const inFlight = 8 * 1_048_576;

const config = {
  gate: { maxHeldBytes: heldBytes, onOverflow: "fail" },
  timeouts: { idleTimeoutMs: 1_000 },
} as const;

describe("a provider that answers, before output, with", () => {
  it.each(beforeOutput)("$name: $status", async ({ play, status, code }) => {
    const hostile = await tcpProvider((socket, request, index) =>
      index === 0 ? play(socket, request, 0) : void socket.write(healthyAnswer),
    );
    const { ask, observed, gateway } = await world({ ...config, providers: { p: provider(hostile.origin) } });
    const answer = await ask();
    expect(answer.status).toBe(status);
    expect(answer.complete).toBe(true);
    const body = JSON.parse(answer.body.toString()) as { error: { code: string; message: string } };
    expect(body.error.message).not.toBe("");
    if (code !== undefined) expect(body.error.code).toMatch(code);
    expect(observed.filter((one) => one.type === "request-end")).toMatchObject([
      { outcome: "failure", status, attempts: 1 },
    ]);
    expect(hostile.written).toBeLessThan(heldBytes + inFlight);
    const next = await ask();
    expect(next.status).toBe(200);
    expect(next.complete).toBe(true);
    await gateway.close({ graceMs: 0 });
    await hostile.closed();
  });
});

describe("a provider that answers, after output, with", () => {
  it.each(afterOutput)("$name: a stream that does not look complete", async ({ play, kind }) => {
    const hostile = await tcpProvider(play);
    const { ask, ended, observed } = await world({ ...config, providers: { p: provider(hostile.origin) } });
    const answer = await ask();
    await ended(1);
    expect(answer.status).toBe(200);
    expect(answer.complete).toBe(false);
    expect(answer.body.toString().startsWith(output)).toBe(true);
    expect(answer.body.toString()).toMatch(/\n\ndata: \{"error":\{[^\n]*\}\n\n$/);
    expect(observed.find((one) => one.type === "stream-fail")).toMatchObject({ failure: { kind } });
    await hostile.closed();
  });

  it("trailers after the last event: a complete stream", async () => {
    const hostile = await tcpProvider(write(`${chunkedHead}${asChunk(output + done)}0\r\nx-trailer: 1\r\n\r\n`));
    const { ask } = await world({ ...config, providers: { p: provider(hostile.origin) } });
    expect(await ask()).toMatchObject({ status: 200, complete: true });
  });

  it("a line without end: it passes through, unread, to a client that takes it", async () => {
    const hostile = await tcpProvider(pouring(openHead + output, "x".repeat(65_536)));
    const { open, ended } = await world({ ...config, providers: { p: provider(hostile.origin) } });
    const client = await open();
    while (client.byteLength < 20 * 1_048_576) await new Promise((resolve) => client.socket.once("data", resolve));
    client.leave();
    await ended(1);
    await hostile.closed();
  });
});

describe("a provider that never ends its opening, with the default onOverflow", () => {
  it.each([
    ["a line", "x".repeat(9000)],
    ["comments", ": keepalive\n\n".repeat(100)],
    ["empty data lines", "data:\n".repeat(100)],
    ["neutral events", preamble.repeat(50)],
  ])("%s: it is released at the limit, and the record says so", async (_name, bytes) => {
    const hostile = await tcpProvider(pouring(openHead, bytes));
    const { open, observed, ended } = await world({
      gate: { maxHeldBytes: heldBytes },
      providers: { p: provider(hostile.origin) },
    });
    const client = await open();
    await client.waitFor("HTTP/1.1 200");
    client.leave();
    await ended(1);
    const overflow = observed.find((one) => one.type === "gate-overflow");
    expect(overflow?.heldBytes).toBeLessThan(heldBytes + 2 * 65_536);
    await hostile.closed();
  });
});

it("a thousand answers that are turned down leave no connection behind", async () => {
  const hostile = await tcpProvider(
    write(`${chunkedHead}${asChunk(event({ error: { message: "Broke.", type: "server_error" } }))}`),
  );
  const { gateway } = await world({ providers: { p: provider(hostile.origin) } });
  for (let round = 0; round < 20; round += 1) {
    const results = Array.from({ length: 50 }, async () => {
      const request = {
        method: "POST",
        url: "/v1/chat/completions",
        headers: {},
        body: Buffer.from('{"model":"m","stream":true}'),
        signal: new AbortController().signal,
      };
      for await (const one of gateway.handle(request)) if (one.type === "failed") return one.status;
      return 0;
    });
    expect(new Set(await Promise.all(results))).toEqual(new Set([500]));
  }
  await hostile.closed();
  expect(hostile.requests).toHaveLength(1000);
});
