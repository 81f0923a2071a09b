/** Streams that break after release. */

import assert from "node:assert/strict";
import { anthropicErrorAfterText } from "../anthropic-streams.js";
import { chatErrorAfterText, chatTruncatedAfterText } from "../chat-streams.js";
import { end, fin, hold, reset, sse } from "../script.js";
import type { Script } from "../script.js";
import { clientProtocols, protocolNamed } from "./client-protocols.js";
import type { AdapterHarness, ContractFramework } from "./harness.js";
import { inScenario } from "./scenario.js";

export function brokenStreamFacts(harness: AdapterHarness, framework: ContractFramework): void {
  brokenStreams(harness, framework);
  unusualEnds(harness, framework);
}

function brokenStreams(harness: AdapterHarness, { describe, it }: ContractFramework): void {
  const breaks: { name: string; how: Script; config?: { timeouts: { idleTimeoutMs: number } } }[] = [
    { name: "a reset", how: [reset()] },
    { name: "a connection that closes", how: [fin()] },
    { name: "a clean end without the protocol's last event", how: [end()] },
    { name: "silence beyond the idle timeout", how: [hold()], config: { timeouts: { idleTimeoutMs: 250 } } },
  ];

  for (const protocol of clientProtocols) {
    const { truncated, brokenStreamEvent } = protocol;
    const sent = truncated().join("");

    describe(`${protocol.name}, broken after release`, () => {
      for (const { name, how, config } of breaks) {
        it(`never makes a complete answer of ${name}`, () =>
          inScenario(harness, { protocol, first: sse(truncated(), { after: how }), config }, async (world) => {
            const answer = await world.ask();
            assert.equal(answer.status, 200);
            assert.equal(answer.complete, false);
            const body = answer.body.toString();
            if (brokenStreamEvent === undefined) assert.equal(body, sent.slice(0, body.length));
            else assert.ok(body.startsWith(sent) && body.slice(sent.length).includes(brokenStreamEvent), body);
            assert.equal((await world.event("stream-fail")).attempt, 1);
          }));
      }

      it("is not continued by another target", () => {
        const scripts = { first: sse(truncated(), { after: [reset()] }), second: sse(protocol.healthy()) };
        return inScenario(harness, { protocol, ...scripts }, async (world) => {
          await world.ask();
          assert.equal(world.second.requests.length, 0);
        });
      });
    });
  }
}

function unusualEnds(harness: AdapterHarness, { describe, it }: ContractFramework): void {
  describe("an error event after release", () => {
    const cases = [
      ["Messages", anthropicErrorAfterText],
      ["Chat Completions", chatErrorAfterText],
    ] as const;
    for (const [name, events] of cases) {
      it(`is passed on once in ${name}, with nothing added to it`, () =>
        inScenario(harness, { protocol: protocolNamed(name), first: sse(events()) }, async ({ ask, event }) => {
          assert.equal((await ask()).body.toString(), events().join(""));
          assert.equal((await event("stream-fail")).attempt, 1);
        }));
    }
  });

  describe("a compatible provider's stream", () => {
    it("may end cleanly without the protocol's last event", () => {
      const protocol = protocolNamed("Chat Completions");
      return inScenario(
        harness,
        { protocol, first: sse(chatTruncatedAfterText()), providerType: "openai-compatible" },
        async ({ ask }) => {
          const answer = await ask();
          assert.equal(answer.body.toString(), chatTruncatedAfterText().join(""));
          assert.equal(answer.complete, true);
        },
      );
    });
  });
}
