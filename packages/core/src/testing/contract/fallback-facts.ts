/** What a client sees when targets fail before release. */

import assert from "node:assert/strict";
import { responsesFailedAfterCreated } from "../responses-streams.js";
import { hold, json, reset, sse } from "../script.js";
import { refusedUrl } from "../scripted-provider.js";
import { anyProtocol, clientProtocols, protocolNamed } from "./client-protocols.js";
import type { ClientProtocol } from "./client-protocols.js";
import type { AdapterHarness, ContractFramework } from "./harness.js";
import { headerOf } from "./raw-client.js";
import type { Answer } from "./raw-client.js";
import { inScenario } from "./scenario.js";

interface ErrorObject {
  readonly type?: unknown;
  readonly message?: unknown;
  readonly code?: unknown;
}

/** The error object of a body in the client's protocol, after the facts that hold for every failure. */
export function errorIn(answer: Answer, protocol: ClientProtocol): ErrorObject {
  assert.match(headerOf(answer, "content-type") ?? "", /^application\/json/);
  assert.equal(headerOf(answer, "x-accel-buffering"), undefined);
  assert.equal(answer.complete, true);
  const body = JSON.parse(answer.body.toString()) as { type?: unknown; error: ErrorObject };
  if (protocol.providerType === "anthropic") assert.equal(body.type, "error");
  else for (const field of ["message", "type", "param", "code"]) assert.ok(field in body.error, `error.${field}`);
  assert.equal(typeof body.error.message, "string");
  assert.equal(typeof body.error.type, "string");
  return body.error;
}

export function fallbackFacts(harness: AdapterHarness, framework: ContractFramework): void {
  failingStreams(harness, framework);
  failingTargets(harness, framework);
}

function failingStreams(harness: AdapterHarness, { describe, it }: ContractFramework): void {
  for (const protocol of clientProtocols) {
    const { failing, healthy, failure } = protocol;

    describe(`${protocol.name}, failing before release`, () => {
      it("falls back and sends nothing of the failed stream", () =>
        inScenario(harness, { protocol, first: sse(failing()), second: sse(healthy()) }, async ({ ask, ...world }) => {
          const answer = await ask();
          assert.equal(answer.status, 200);
          assert.equal(answer.body.toString(), healthy().join(""));
          assert.equal(headerOf(answer, "x-tfy-attempts"), "2");
          assert.equal(headerOf(answer, "x-tfy-resolved-model"), "second/model-b");
          assert.deepEqual([world.first.requests.length, world.second.requests.length], [1, 1]);
        }));

      it("answers in the client's protocol when every target fails", () =>
        inScenario(harness, { protocol, first: sse(failing()), second: sse(failing()) }, async ({ ask }) => {
          const answer = await ask();
          assert.equal(answer.status, failure.status);
          const error = errorIn(answer, protocol);
          assert.equal(error.type, failure.type);
          assert.equal(error.message, failure.message);
          assert.equal(headerOf(answer, "x-should-retry"), undefined);
        }));

      it("answers an empty stream with 502", () =>
        inScenario(harness, { protocol, first: sse([]) }, async ({ ask }) => {
          const answer = await ask();
          assert.equal(answer.status, 502);
          errorIn(answer, protocol);
        }));

      it("answers a stream that ends before output with 502", () =>
        inScenario(harness, { protocol, first: sse(protocol.preamble()) }, async ({ ask }) => {
          const answer = await ask();
          assert.equal(answer.status, 502);
          errorIn(answer, protocol);
        }));

      it("keeps the status of an HTTP error", () => {
        const body = { type: "error", error: { type: "invalid_request_error", message: "Too long.", code: null } };
        return inScenario(harness, { protocol, first: json(422, body) }, async ({ ask }) => {
          const answer = await ask();
          assert.equal(answer.status, 422);
          assert.match(String(errorIn(answer, protocol).message), /^Too long\./);
          assert.equal(headerOf(answer, "x-should-retry"), "false");
        });
      });
    });
  }
}

function failingTargets(harness: AdapterHarness, { describe, it }: ContractFramework): void {
  const protocol = anyProtocol;

  describe("failing before release", () => {
    it("tells the client not to repeat what cannot succeed", () => {
      const responses = protocolNamed("Responses");
      const events = responsesFailedAfterCreated({ code: "insufficient_quota", message: "You exceeded your quota." });
      return inScenario(harness, { protocol: responses, first: sse(events) }, async ({ ask }) => {
        const answer = await ask();
        assert.equal(answer.status, 429);
        assert.equal(headerOf(answer, "x-should-retry"), "false");
        assert.equal(errorIn(answer, responses).code, "insufficient_quota");
      });
    });

    it("passes on how long the provider asks to wait", () => {
      const body = { type: "error", error: { type: "rate_limit_error", message: "Slow down." } };
      const first = json(429, body, { "retry-after": "7" });
      return inScenario(harness, { protocol, first }, async ({ ask }) => {
        const answer = await ask();
        assert.equal(answer.status, 429);
        assert.equal(headerOf(answer, "retry-after"), "7");
      });
    });

    it("closes the connection of a failed stream that stays open", () => {
      const scripts = { first: sse(protocol.failing(), { after: [hold()] }), second: sse(protocol.healthy()) };
      return inScenario(harness, { protocol, ...scripts }, async ({ ask, first }) => {
        assert.equal((await ask()).status, 200);
        assert.equal((await first.requests[0]?.closed)?.byClient, true);
      });
    });

    it("falls back from a connection that is reset", () =>
      inScenario(harness, { protocol, first: [reset()], second: sse(protocol.healthy()) }, async ({ ask }) => {
        assert.equal((await ask()).body.toString(), protocol.healthy().join(""));
      }));

    it("answers 502 when nobody listens at the target", async () => {
      const providers = { dead: { type: "anthropic", baseUrl: await refusedUrl(), apiKey: "key" } } as const;
      const models = { fast: { routing: "priority", targets: [{ target: "dead/model" }] } } as const;
      await inScenario(harness, { protocol, first: [], config: { providers, models } }, async ({ ask }) => {
        const answer = await ask();
        assert.equal(answer.status, 502);
        errorIn(answer, protocol);
      });
    });

    it("names no key and no address in an answer about the target's credentials", () => {
      const body = { type: "error", error: { type: "authentication_error", message: "invalid key-of-the-target" } };
      return inScenario(harness, { protocol, first: json(401, body) }, async ({ ask }) => {
        const answer = await ask();
        assert.equal(answer.status, 502);
        assert.equal(answer.body.includes("key-of-the-target"), false);
      });
    });
  });
}
