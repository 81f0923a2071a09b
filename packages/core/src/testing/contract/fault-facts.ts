/** A fault at each event of a request: wherever it comes, one outcome, and nothing is left of the request. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { setImmediate } from "node:timers/promises";
import type { ObserverEvent } from "../../observability/observer.js";
import { chunk, end, head, hold, reset, sse } from "../script.js";
import type { Script, Step } from "../script.js";
import { anyProtocol, clientProtocols } from "./client-protocols.js";
import type { ClientProtocol } from "./client-protocols.js";
import type { AdapterHarness, ContractFramework } from "./harness.js";
import { headerOf } from "./raw-client.js";
import type { Answer } from "./raw-client.js";
import { inScenario } from "./scenario.js";
import type { Scenario } from "./scenario.js";

export function faultFacts(harness: AdapterHarness, framework: ContractFramework): void {
  providerFaults(harness, framework);
  clientFaults(harness, framework);
}

/** A healthy answer, event by event. */
function stepsOf(protocol: ClientProtocol): Step[] {
  return [head(200, { "content-type": "text/event-stream" }), ...protocol.healthy().map(chunk)];
}

type RequestEnd = ObserverEvent & { type: "request-end" };

/** Waits until so many requests have ended. */
async function endsOf(world: Scenario, requests: number): Promise<RequestEnd[]> {
  for (;;) {
    const ends = world.events.filter((event): event is RequestEnd => event.type === "request-end");
    if (ends.length >= requests) return ends;
    await setImmediate();
  }
}

/** Index of the first event with generated text. */
function firstOutput(protocol: ClientProtocol): number {
  return protocol.healthy().findIndex((event) => /text_delta|output_text\.delta|"content":"[^"]/.test(event));
}

/** What a client may get of an answer that breaks off after `events` of its events. */
function checkBroken(answer: Answer, protocol: ClientProtocol, events: number): void {
  const all = protocol.healthy();
  if (events <= firstOutput(protocol)) {
    assert.equal(answer.status, 502);
    assert.equal(answer.complete, true);
    return;
  }
  assert.equal(answer.status, 200);
  assert.ok(answer.body.toString().startsWith(all.slice(0, events).join("")));
  // The last events of a stream say together that it is complete.
  if (events < all.length - 2) assert.equal(answer.complete, false);
  if (events === all.length) assert.equal(answer.complete, true);
}

function providerFaults(harness: AdapterHarness, { describe, it }: ContractFramework): void {
  describe("a provider that fails at each event", () => {
    for (const protocol of clientProtocols) {
      const steps = stepsOf(protocol);
      for (const [name, fault] of [
        ["a reset", reset()],
        ["an early end", end()],
      ] as const) {
        it(`by ${name}: ${protocol.name} gives one answer, and a fallback an unmixed one`, () => {
          const broken = (_request: unknown, index: number): Script => [
            ...steps.slice(0, Math.floor(index / 2)),
            fault,
          ];
          const scripts = { first: broken, second: sse(protocol.healthy()) };
          const models = {
            alone: { targets: [{ target: "first/model-a" }] },
            both: { targets: [{ target: "first/model-a" }, { target: "second/model-b" }] },
          };
          const config = { models, cooldown: false as const, retry: { attempts: 0 } };
          return inScenario(harness, { protocol, ...scripts, config }, async (world) => {
            for (let position = 0; position <= steps.length; position += 1) {
              const events = position - 1;
              const alone = await world.ask({ body: JSON.stringify(protocol.body({ model: "alone" })) });
              checkBroken(alone, protocol, events);
              const both = await world.ask({ body: JSON.stringify(protocol.body({ model: "both" })) });
              if (events > firstOutput(protocol)) checkBroken(both, protocol, events);
              else
                assert.equal(
                  both.body.toString(),
                  protocol.healthy().join(""),
                  `after ${events} events: ${both.status} ${headerOf(both, "x-tfy-attempt-trail")}, complete: ${both.complete}`,
                );
            }
            await endsOf(world, 2 * (steps.length + 1));
            await setImmediate();
            assert.equal((await endsOf(world, 0)).length, 2 * (steps.length + 1));
          });
        });
      }
    }
  });
}

function clientFaults(harness: AdapterHarness, { describe, it }: ContractFramework): void {
  describe("a client that leaves at each event", () => {
    for (const protocol of clientProtocols) {
      const steps = stepsOf(protocol);
      for (const turns of [0, 3]) {
        it(`${turns === 0 ? "at once" : "a moment later"}: ${protocol.name} ends once, and the provider's connection with it`, () => {
          const first = (_request: unknown, index: number): Script => [...steps.slice(0, index), hold()];
          return inScenario(harness, { protocol, first }, async (world) => {
            for (let position = 0; position <= steps.length; position += 1) {
              const client = await world.open();
              const request = await world.first.request(position);
              while (request.played.at(-1)?.step.step !== "hold") await setImmediate();
              for (let turn = 0; turn < turns; turn += 1) await setImmediate();
              client.leave();
              assert.equal((await request.closed).byClient, true);
              const last = (await endsOf(world, position + 1)).at(-1);
              assert.equal(last?.outcome, "client-abort");
            }
            await setImmediate();
            assert.equal((await endsOf(world, 0)).length, steps.length + 1);
            assert.equal(world.first.openConnections, 0);
          });
        });
      }
    }

    it("within its own request: no provider is called", () => {
      const protocol = anyProtocol;
      return inScenario(harness, { protocol, first: sse(protocol.healthy()) }, async (world) => {
        const body = JSON.stringify(protocol.body());
        const lines = [
          `POST ${protocol.path} HTTP/1.1`,
          "host: x",
          "content-type: application/json",
          `content-length: ${body.length}`,
        ];
        const whole = `${lines.join("\r\n")}\r\n\r\n${body}`;
        for (let cut = 1; cut < whole.length; cut += 20) {
          const socket = connect(Number(new URL(world.app.url).port), "127.0.0.1");
          socket.write(whole.slice(0, cut));
          await once(socket, "connect");
          await setImmediate();
          socket.destroy();
          await once(socket, "close");
        }
        assert.equal((await world.ask()).status, 200);
        assert.equal(world.first.requests.length, 1);
      });
    });
  });
}
