/** What a client sees of a stream that is released, and that it sees nothing before. */

import assert from "node:assert/strict";
import { anthropicHealthy } from "../anthropic-streams.js";
import { chunk, end, json, noResponse, sse, until } from "../script.js";
import type { Script } from "../script.js";
import { anyProtocol, clientProtocols } from "./client-protocols.js";
import type { AdapterHarness, ContractFramework } from "./harness.js";
import { latch } from "./latch.js";
import { headerOf } from "./raw-client.js";
import { inScenario } from "./scenario.js";

export function releaseFacts(harness: AdapterHarness, framework: ContractFramework): void {
  releasedStreams(harness, framework);
  passingOn(harness, framework);
  headerFacts(harness, framework);
}

function releasedStreams(harness: AdapterHarness, { describe, it }: ContractFramework): void {
  for (const protocol of clientProtocols) {
    describe(`${protocol.name}, released`, () => {
      it("passes on every byte of a healthy stream, and ends it", () =>
        inScenario(harness, { protocol, first: sse(protocol.healthy()) }, async ({ ask, first }) => {
          const answer = await ask();
          assert.equal(answer.status, 200);
          assert.equal(answer.body.toString(), protocol.healthy().join(""));
          assert.equal(answer.complete, true);
          assert.equal(first.requests.length, 1);
        }));

      it("marks the answer as a stream that nothing on the way may buffer", () =>
        inScenario(harness, { protocol, first: sse(protocol.healthy()) }, async ({ ask }) => {
          const answer = await ask();
          assert.equal(headerOf(answer, "content-type"), "text/event-stream");
          assert.equal(headerOf(answer, "cache-control"), "no-cache, no-transform");
          assert.equal(headerOf(answer, "x-accel-buffering"), "no");
          assert.equal(headerOf(answer, "content-length"), undefined);
          assert.equal(headerOf(answer, "x-tfy-attempts"), "1");
        }));

      it("sends neither status nor header before the first output", () => {
        const go = latch();
        const { preamble, healthy } = protocol;
        const rest = healthy().slice(preamble().length);
        const slow = sse(preamble(), { after: [until(() => go.opened), ...rest.map(chunk), end()] });
        const first = (_request: unknown, index: number): Script => (index === 0 ? slow : sse(healthy()));
        return inScenario(harness, { protocol, first }, async ({ open, ask, first: provider }) => {
          const client = await open();
          await provider.request(0);
          // Two requests pass through the whole gateway meanwhile, so the preamble has had its turn.
          await ask();
          await ask();
          assert.equal(client.byteLength, 0);
          go.open();
          assert.equal((await client.answer()).body.toString(), healthy().join(""));
        });
      });

      it("relays a non-streaming answer with its status and its bytes", () => {
        const body = `${JSON.stringify(protocol.complete(), undefined, 2)}\n`;
        return inScenario(harness, { protocol, first: json(200, body) }, async ({ ask }) => {
          const answer = await ask({ body: JSON.stringify(protocol.body({ stream: false })) });
          assert.equal(answer.status, 200);
          assert.equal(headerOf(answer, "content-type"), "application/json");
          assert.equal(answer.body.toString(), body);
          assert.equal(answer.complete, true);
        });
      });
    });
  }
}

function passingOn(harness: AdapterHarness, { describe, it }: ContractFramework): void {
  const protocol = anyProtocol;

  describe("passing on", () => {
    it("sends each chunk when it comes, through a compression middleware too", () => {
      const go = latch();
      const [last = "", ...others] = protocol.healthy().toReversed();
      const script = sse(others.toReversed(), { after: [until(() => go.opened), chunk(last), end()] });
      return inScenario(harness, { protocol, first: script, app: { compression: true } }, async ({ open }) => {
        const client = await open({ headers: { "accept-encoding": "gzip" } });
        await client.waitFor(others[0] ?? "no event");
        go.open();
        const answer = await client.answer();
        assert.equal(answer.body.toString(), protocol.healthy().join(""));
      });
    });

    it("serves the next request on the same connection", () =>
      inScenario(harness, { protocol, first: sse(protocol.healthy()) }, async ({ app }) => {
        for (let round = 0; round < 3; round += 1) {
          const response = await fetch(app.url + protocol.path, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify(protocol.body()),
          });
          assert.equal(await response.text(), protocol.healthy().join(""));
        }
      }));

    it("keeps streams of one moment apart", () => {
      const texts = ["one", "two", "three", "four"];
      // The provider repeats what it was asked, so that a mix-up shows.
      const first = (request: { readonly body: Buffer }): Script => {
        const { metadata } = JSON.parse(request.body.toString()) as { metadata: { user_id: string } };
        return sse(anthropicHealthy({ text: metadata.user_id.repeat(50) }));
      };
      return inScenario(harness, { protocol, first }, async ({ ask }) => {
        const bodies = texts.map((text) => JSON.stringify(protocol.body({ metadata: { user_id: text } })));
        const answers = await Promise.all(bodies.map((body) => ask({ body })));
        for (const [index, answer] of answers.entries()) {
          const text = (texts[index] ?? "").repeat(50);
          assert.equal(answer.body.toString(), anthropicHealthy({ text }).join(""));
        }
      });
    });

    it("answers a silent provider with 408 when the TTFT timeout expires, and closes its connection", () =>
      inScenario(harness, { protocol, first: noResponse() }, async ({ ask, first }) => {
        const answer = await ask({ headers: { "x-tfy-ttft-timeout-ms": "60" } });
        assert.equal(answer.status, 408);
        assert.equal(headerOf(answer, "x-should-retry"), "false");
        assert.match(answer.body.toString(), /TTFT timeout: no first chunk received \(timeout=60ms\)/);
        assert.equal((await first.requests[0]?.closed)?.byClient, true);
      }));
  });
}

function headerFacts(harness: AdapterHarness, { describe, it }: ContractFramework): void {
  const protocol = anyProtocol;

  describe("headers", () => {
    it("lets headers of earlier middleware stand, on a stream and on a failure", async () => {
      const earlierHeaders = {
        vary: "Origin",
        "access-control-allow-origin": "https://app.example",
        "set-cookie": ["session=1; Path=/", "theme=dark; Path=/"],
      };
      for (const events of [protocol.healthy(), protocol.failing()]) {
        await inScenario(harness, { protocol, first: sse(events), app: { earlierHeaders } }, async ({ ask }) => {
          const answer = await ask();
          assert.match(headerOf(answer, "vary") ?? "", /Origin/);
          assert.equal(headerOf(answer, "access-control-allow-origin"), "https://app.example");
          const cookies = answer.headers.filter(([name]) => name === "set-cookie").map(([, value]) => value);
          assert.deepEqual(cookies, earlierHeaders["set-cookie"]);
        });
      }
    });

    it("hides what the provider's answer says of itself", () => {
      const headers = { "set-cookie": "provider=1", server: "provider", "x-ratelimit-remaining-requests": "7" };
      return inScenario(harness, { protocol, first: sse(protocol.healthy(), { headers }) }, async ({ ask }) => {
        const answer = await ask();
        assert.equal(headerOf(answer, "set-cookie"), undefined);
        assert.equal(headerOf(answer, "server"), undefined);
        assert.equal(headerOf(answer, "x-ratelimit-remaining-requests"), "7");
      });
    });

    it("sends no credential, cookie or hop-by-hop header of the client to the provider", () =>
      inScenario(harness, { protocol, first: sse(protocol.healthy()) }, async ({ ask, first }) => {
        const canary = "canary-value";
        const headers = { authorization: `Bearer ${canary}`, "x-api-key": canary, cookie: canary, "x-unknown": canary };
        await ask({ headers });
        const sent = first.requests[0];
        assert.equal(
          sent?.rawHeaders.some((value) => value.includes(canary)),
          false,
        );
        assert.equal(sent?.headers["x-api-key"], "key-of-the-target");
      }));
  });
}
