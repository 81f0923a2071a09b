/** Which requests are the gateway's, under which paths, and what the host's own auth has to say. */

import assert from "node:assert/strict";
import { sse } from "../script.js";
import { anyProtocol, clientProtocols } from "./client-protocols.js";
import { errorIn } from "./fallback-facts.js";
import type { AdapterHarness, ContractFramework } from "./harness.js";
import { headerOf } from "./raw-client.js";
import { inScenario } from "./scenario.js";

export function routingFacts(harness: AdapterHarness, framework: ContractFramework): void {
  notOurs(harness, framework);
  mounted(harness, framework);
  identified(harness, framework);
}

function notOurs(harness: AdapterHarness, { describe, it }: ContractFramework): void {
  const protocol = anyProtocol;
  const foreign = [
    ["GET", "/"],
    ["GET", "/v1/messages"],
    ["OPTIONS", "/v1/messages"],
    ["POST", "/messages"],
    ["POST", "/responses"],
    ["POST", "/v1/messages/batches"],
    ["POST", "/v1/chat/completions"],
    ["POST", "/v1beta/models/gemini:streamGenerateContent"],
    ["POST", "/orders"],
  ] as const;

  describe("requests that are not the gateway's", () => {
    for (const [method, path] of foreign) {
      it(`leaves ${method} ${path} to the host`, () =>
        inScenario(harness, { protocol, first: sse(protocol.healthy()) }, async ({ ask, first }) => {
          const answer = await ask({ method, path });
          assert.equal(headerOf(answer, "x-host"), "yes");
          assert.equal(answer.body.toString(), `${method} ${path}`);
          assert.equal(headerOf(answer, "x-tfy-attempts"), undefined);
          assert.equal(first.requests.length, 0);
        }));
    }

    it("leaves the body of such a request unread", () =>
      inScenario(harness, { protocol, first: sse(protocol.healthy()) }, async ({ ask }) => {
        const answer = await ask({ path: "/orders", body: "x".repeat(200_000), headers: { "content-type": "text/x" } });
        assert.equal(headerOf(answer, "x-host-body-bytes"), "200000");
      }));

    for (const path of ["//v1/messages", "/v1//messages", "/v1/messages/", "/%2e%2e/v1/messages", "/v1/%6dessages"]) {
      it(`sends POST ${path} to no address but the provider's`, () =>
        inScenario(harness, { protocol, first: sse(protocol.healthy()) }, async ({ ask, first }) => {
          const answer = await ask({ path });
          assert.notEqual(answer.status, 0);
          assert.equal(
            first.requests.every((request) => request.path === "/v1/messages"),
            true,
          );
        }));
    }
  });
}

function mounted(harness: AdapterHarness, { describe, it }: ContractFramework): void {
  describe("mounted below a path", () => {
    for (const protocol of clientProtocols) {
      for (const path of [`/llm${protocol.path}`, `/llm${protocol.path.replace("/v1", "")}`]) {
        for (const app of [{ mount: "/llm" }, { options: { prefix: "/llm" } }]) {
          it(`serves ${path} with ${"mount" in app ? "the framework's mounting" : "options.prefix"}`, () =>
            inScenario(harness, { protocol, first: sse(protocol.healthy()), app }, async ({ ask, first }) => {
              const answer = await ask({ path });
              assert.equal(answer.body.toString(), protocol.healthy().join(""));
              assert.equal(first.requests[0]?.path, protocol.path);
            }));
        }
      }
    }

    it("leaves other paths to the host", () =>
      inScenario(harness, { protocol: anyProtocol, first: [], app: { mount: "/llm" } }, async ({ ask, first }) => {
        for (const path of ["/v1/messages", "/llmv1/messages", "/llm/orders"]) {
          assert.equal((await ask({ path })).body.toString(), `POST ${path}`);
        }
        assert.equal(first.requests.length, 0);
      }));
  });

  describe("queries", () => {
    it("does not match them, and passes on those that the provider knows", () =>
      inScenario(harness, { protocol: anyProtocol, first: sse(anyProtocol.healthy()) }, async ({ ask, first }) => {
        await ask({ path: "/v1/messages?beta=true&key=secret&other=1" });
        assert.equal(first.requests[0]?.path, "/v1/messages?beta=true");
      }));
  });
}

function identified(harness: AdapterHarness, { describe, it }: ContractFramework): void {
  describe("identify", () => {
    for (const protocol of clientProtocols) {
      for (const reject of [401, 403] as const) {
        it(`answers ${reject} in the ${protocol.name} protocol and calls no provider`, () => {
          const options = { identify: () => Promise.resolve({ reject }) };
          const first = sse(protocol.healthy());
          return inScenario(harness, { protocol, first, app: { options } }, async ({ ask, ...world }) => {
            const answer = await ask();
            assert.equal(answer.status, reject);
            errorIn(answer, protocol);
            assert.equal(world.first.requests.length, 0);
          });
        });
      }
    }

    it("is not asked about requests that are not the gateway's", () => {
      const options = { identify: () => ({ reject: 401 }) as const };
      return inScenario(harness, { protocol: anyProtocol, first: [], app: { options } }, async ({ ask }) => {
        assert.equal((await ask({ path: "/orders" })).status, 200);
      });
    });

    it("gives metadata that rules go by and that a client's header cannot change", () => {
      const protocol = anyProtocol;
      const options = { identify: () => ({ subject: "ada", metadata: { tier: "gold" } }) };
      const rules = [
        { id: "gold", when: { metadata: { tier: "gold" } }, routing: "priority", targets: [{ target: "second/vip" }] },
      ] as const;
      const scripts = { first: sse(protocol.healthy()), second: sse(protocol.healthy()) };
      return inScenario(harness, { protocol, ...scripts, config: { rules }, app: { options } }, async (world) => {
        await world.ask({ headers: { "x-tfy-metadata": '{"tier":"tin"}' } });
        assert.deepEqual([world.first.requests.length, world.second.requests.length], [0, 1]);
        assert.equal((await world.event("request-start")).subject, "ada");
      });
    });

    it("sees what an earlier middleware waited for", () => {
      const protocol = anyProtocol;
      const options = {
        identify: (headers: Readonly<Record<string, unknown>>) =>
          headers["authorization"] === "Bearer host-token" ? { subject: "ada" } : { reject: 401 as const },
      };
      return inScenario(harness, { protocol, first: sse(protocol.healthy()), app: { options } }, async ({ ask }) => {
        assert.equal((await ask()).status, 401);
        assert.equal((await ask({ headers: { authorization: "Bearer host-token" } })).status, 200);
      });
    });
  });
}
