/** A client that leaves, and one that does not read. */

import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import { chunk, end, flood, head, hold, json, noResponse, sse, until } from "../script.js";
import type { Script } from "../script.js";
import { anyProtocol, protocolNamed } from "./client-protocols.js";
import type { AdapterHarness, ContractFramework } from "./harness.js";
import { latch } from "./latch.js";
import { inScenario } from "./scenario.js";
import type { Scenario } from "./scenario.js";

/** The promise to users: spending at the provider stops within this. */
const closesWithinMs = 100;

export function disconnectFacts(harness: AdapterHarness, framework: ContractFramework): void {
  leaving(harness, framework);
  leavingOtherwise(harness, framework);
  notReading(harness, framework);
}

async function leaves(world: Scenario, sees?: string): Promise<void> {
  const client = await world.open();
  const request = await world.first.request(0);
  if (sees !== undefined) await client.waitFor(sees);
  const leftAt = performance.now();
  client.leave();
  const closed = await request.closed;
  assert.equal(closed.byClient, true);
  assert.ok(closed.at - leftAt < closesWithinMs, `closed ${Math.round(closed.at - leftAt)} ms after the client left`);
}

function leaving(harness: AdapterHarness, { describe, it }: ContractFramework): void {
  const protocol = anyProtocol;
  const second = sse(protocol.healthy());
  const phases: { name: string; script: Script; sees?: string }[] = [
    { name: "waiting for the provider", script: noResponse() },
    { name: "having only the provider's head", script: [head(200), hold()] },
    { name: "holding", script: sse(protocol.preamble(), { after: [hold()] }) },
    { name: "streaming", script: sse(protocol.truncated(), { after: [hold()] }), sees: "text_delta" },
  ];

  describe("a client that leaves", () => {
    for (const { name, script, sees } of phases) {
      it(`ends the provider's connection while the gateway is ${name}`, () =>
        inScenario(harness, { protocol, first: script, second }, async (world) => {
          await leaves(world, sees);
          const { status, outcome, attempts } = await world.event("request-end");
          assert.deepEqual({ status, outcome, attempts }, { status: 499, outcome: "client-abort", attempts: 1 });
          assert.equal(world.second.requests.length, 0);
        }));
    }

    it("ends the retries while the gateway is backing off", () => {
      const first = json(503, { type: "error", error: { type: "overloaded_error", message: "Busy." } });
      const config = { retry: { attempts: 5, delayMs: 5000 } };
      return inScenario(harness, { protocol, first, config }, async (world) => {
        const client = await world.open();
        await world.event("attempt-reject");
        client.leave();
        assert.equal((await world.event("request-end")).status, 499);
        assert.equal(world.first.requests.length, 1);
      });
    });
  });
}

function leavingOtherwise(harness: AdapterHarness, { describe, it }: ContractFramework): void {
  const protocol = anyProtocol;
  const healthy = sse(protocol.healthy());

  describe("a client that leaves", () => {
    it("is noticed before the first attempt, when an earlier middleware is slow", () => {
      const noticed = latch();
      let waits = true;
      const earlierWait = async (left: Promise<void>): Promise<void> => {
        if (!waits) return;
        waits = false;
        await left;
        noticed.open();
      };
      return inScenario(harness, { protocol, first: healthy, app: { earlierWait } }, async (world) => {
        (await world.open()).leave();
        await noticed.opened;
        assert.equal((await world.ask()).status, 200);
        assert.equal(world.first.requests.length, 1);
      });
    });

    it("does not end a Responses call that runs in the background", () => {
      const responses = protocolNamed("Responses");
      const go = latch();
      const rest = responses.healthy().slice(responses.preamble().length);
      const slow = sse(responses.preamble(), { after: [until(() => go.opened), ...rest.map(chunk), end()] });
      const first = (_request: unknown, index: number): Script => (index === 0 ? slow : sse(responses.healthy()));
      return inScenario(harness, { protocol: responses, first }, async (world) => {
        const client = await world.open({ body: JSON.stringify(responses.body({ background: true })) });
        await client.waitFor("response.created");
        client.leave();
        // The gateway has heard of it by the time another request has been served.
        assert.equal((await world.ask()).status, 200);
        go.open();
        const request = await world.first.request(0);
        await request.scriptDone;
        assert.equal(request.played.at(-1)?.step.step, "end");
      });
    });

    it("while it still sends its body calls no provider", () =>
      inScenario(harness, { protocol, first: healthy }, async (world) => {
        const body = JSON.stringify(protocol.body());
        const headers = { "content-type": "application/json", "content-length": String(body.length + 10) };
        const client = await world.open({ body: undefined, headers });
        client.socket.write(body);
        client.leave();
        await client.closed;
        assert.equal((await world.ask()).status, 200);
        assert.equal(world.first.requests.length, 1);
      }));
  });
}

function notReading(harness: AdapterHarness, { describe, it }: ContractFramework): void {
  const protocol = anyProtocol;
  const comment = `: ${"x".repeat(64 * 1024)}\n\n`;
  const count = 1500;

  describe("a client that does not read", () => {
    it("stops the provider, and gets every byte once it reads again", () => {
      const first = sse(protocol.truncated(), { after: [flood(comment, count), chunk(protocol.terminal), end()] });
      return inScenario(harness, { protocol, first }, async (world) => {
        const client = await world.open();
        await client.waitFor("text_delta");
        client.socket.pause();
        const request = await world.first.request(0);
        const stalledAt = await standstill(() => request.sentBytes);
        assert.ok(stalledAt < (count * comment.length) / 2, `${stalledAt} bytes were taken from the provider`);
        client.socket.resume();
        const answer = await client.answer();
        assert.equal(answer.complete, true);
        assert.equal(answer.body.length, request.sentBytes);
      });
    });

    it("is given up after the write stall timeout, and so is the provider", () => {
      const script = sse(protocol.truncated(), { after: [flood(comment, count), end()] });
      const config = { timeouts: { writeStallTimeoutMs: 300 } };
      return inScenario(harness, { protocol, first: script, config }, async (world) => {
        const client = await world.open();
        await client.waitFor("text_delta");
        client.socket.pause();
        const closed = await (await world.first.request(0)).closed;
        assert.equal(closed.byClient, true);
        client.leave();
      });
    });
  });
}

/** The value once it stands still: five equal readings in a row, 40 ms apart. */
async function standstill(read: () => number): Promise<number> {
  let last = -1;
  for (let equal = 0; equal < 5; equal += 1) {
    await setTimeout(40);
    const value = read();
    if (value !== last) equal = -1;
    last = value;
  }
  return last;
}
