/** Request bodies: before and after parsers, and those that cannot be served. */

import assert from "node:assert/strict";
import { sse } from "../script.js";
import { anyProtocol, clientProtocols } from "./client-protocols.js";
import { errorIn } from "./fallback-facts.js";
import type { AdapterHarness, BodyParser, ContractFramework } from "./harness.js";
import { inScenario } from "./scenario.js";
import type { ScenarioRequest } from "./scenario.js";

export function bodyFacts(harness: AdapterHarness, framework: ContractFramework): void {
  parsedBodies(harness, framework);
  unservableBodies(harness, framework);
}

/** White space, key order, a number that JavaScript cannot hold and an escape: all lost by parsing and writing again. */
function exactBody(model: string): string {
  return `{ "stream":true,"seed":12345678901234567890,\n "model":"${model}" , "max_tokens":1e2,"note":"\\u00e9 é",
  "messages":[{"role":"user","content":"hi"}]}`;
}

/** The requested name is kept, so the gateway has nothing to change. */
const keepName = { "model-*": { routing: "priority", targets: [{ target: "first/*" }] } } as const;

function parsedBodies(harness: AdapterHarness, { describe, it }: ContractFramework): void {
  const protocol = anyProtocol;
  const first = sse(protocol.healthy());

  describe("request bodies", () => {
    for (const bodyParser of ["none", "json-keeping-raw", "raw"] satisfies BodyParser[]) {
      it(`reach the provider byte for byte, with the parser "${bodyParser}" before the gateway`, () => {
        const options = { protocol, first, config: { models: keepName }, app: { bodyParser } };
        return inScenario(harness, options, async ({ ask, ...world }) => {
          const answer = await ask({ body: exactBody("model-x") });
          assert.equal(answer.status, 200);
          assert.equal(world.first.requests[0]?.body.toString(), exactBody("model-x"));
        });
      });

      it(`differ in the model alone where a target renames it, with the parser "${bodyParser}"`, () =>
        inScenario(harness, { protocol, first, app: { bodyParser } }, async ({ ask, ...world }) => {
          await ask({ body: exactBody("fast") });
          const sent = world.first.requests[0]?.body.toString() ?? "";
          assert.match(sent, /"seed":\s*12345678901234567890\b/);
          assert.deepEqual(JSON.parse(sent), JSON.parse(exactBody("model-a")));
        }));
    }

    it("reach the provider with the same values when a parser has kept nothing else", () => {
      const body = JSON.stringify(protocol.body({ temperature: 0.5, metadata: { user_id: "é" } }));
      return inScenario(harness, { protocol, first, app: { bodyParser: "json" } }, async ({ ask, ...world }) => {
        const answer = await ask({ body });
        assert.equal(answer.status, 200);
        const sent = world.first.requests[0];
        assert.deepEqual(JSON.parse(sent?.body.toString() ?? ""), { ...JSON.parse(body), model: "model-a" });
        assert.equal(sent?.headers["content-length"], String(sent?.body.length));
      });
    });

    it("of several megabytes pass", () => {
      const body = JSON.stringify(protocol.body({ system: "x".repeat(3_000_000) }));
      return inScenario(harness, { protocol, first }, async ({ ask, ...world }) => {
        assert.equal((await ask({ body, chunked: true })).status, 200);
        assert.equal(JSON.parse(world.first.requests[0]?.body.toString() ?? "{}").system.length, 3_000_000);
      });
    });

    it("with a key named __proto__ change nothing for the next request", () =>
      inScenario(harness, { protocol, first }, async ({ ask, ...world }) => {
        await ask({ body: '{"__proto__":{"stream":true,"model":"fast"},"model":"fast","stream":true,"messages":[]}' });
        assert.equal((await ask({ body: "{}" })).status, 400);
        assert.equal(world.first.requests.length, 1);
      }));
  });
}

interface Unservable {
  readonly name: string;
  readonly request: ScenarioRequest;
  readonly statuses: readonly number[];
}

/** @param valid a body that could be served */
function unservable(valid: string): Unservable[] {
  return [
    { name: "malformed JSON", request: { body: `${valid.slice(0, -1)},}` }, statuses: [400] },
    { name: "a body that is cut off", request: { body: valid.slice(0, -5) }, statuses: [400] },
    { name: "no body", request: { body: "" }, statuses: [400] },
    { name: "JSON that is no object", request: { body: "[1]" }, statuses: [400] },
    { name: "null", request: { body: "null" }, statuses: [400] },
    { name: "a request without a model", request: { body: '{"stream":true}' }, statuses: [400] },
    { name: "a model that is no text", request: { body: '{"model":{"a":1},"stream":true}' }, statuses: [400] },
    {
      name: "a form",
      request: { body: "model=fast", headers: { "content-type": "application/x-www-form-urlencoded" } },
      statuses: [400, 415],
    },
    {
      name: "a TTFT timeout that is no number",
      request: { headers: { "x-tfy-ttft-timeout-ms": "1e3" } },
      statuses: [400],
    },
  ];
}

function unservableBodies(harness: AdapterHarness, { describe, it }: ContractFramework): void {
  for (const protocol of clientProtocols) {
    const cases = unservable(JSON.stringify(protocol.body()));

    describe(`${protocol.name}, requests that cannot be served`, () => {
      for (const { name, request, statuses } of cases) {
        it(`answers ${name} with ${statuses.join(" or ")}, without a call`, () =>
          inScenario(harness, { protocol, first: sse(protocol.healthy()) }, async ({ ask, first }) => {
            const answer = await ask(request);
            assert.ok(statuses.includes(answer.status), `status ${answer.status}`);
            errorIn(answer, protocol);
            assert.equal(first.requests.length, 0);
          }));
      }

      it("answers an unknown model with 404, and names no other", () =>
        inScenario(harness, { protocol, first: sse(protocol.healthy()) }, async ({ ask, first }) => {
          const answer = await ask({ body: JSON.stringify(protocol.body({ model: "unheard-of" })) });
          assert.equal(answer.status, 404);
          errorIn(answer, protocol);
          assert.equal(answer.body.includes("model-a"), false);
          assert.equal(first.requests.length, 0);
        }));

      for (const [length, chunked] of [
        ["announced", false],
        ["not announced", true],
      ] as const) {
        it(`answers a body above the limit with 413, its length being ${length}`, () => {
          const config = { limits: { maxRequestBytes: 1000 } };
          return inScenario(harness, { protocol, first: [], config }, async ({ ask, first }) => {
            const answer = await ask({ body: JSON.stringify(protocol.body({ user: "x".repeat(2000) })), chunked });
            assert.equal(answer.status, 413);
            errorIn(answer, protocol);
            assert.equal(first.requests.length, 0);
          });
        });
      }
    });
  }
}
