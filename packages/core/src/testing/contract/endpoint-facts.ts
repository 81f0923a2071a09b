/** What stands beside generation: counts, stored responses, the list of models. Other methods than POST, and no body. */

import assert from "node:assert/strict";
import { json } from "../script.js";
import { clientProtocols } from "./client-protocols.js";
import type { ClientProtocol } from "./client-protocols.js";
import type { AdapterHarness, ContractFramework } from "./harness.js";
import { headerOf } from "./raw-client.js";
import { inScenario } from "./scenario.js";

export function endpointFacts(harness: AdapterHarness, { describe, it }: ContractFramework): void {
  const [messages, responses] = ["Messages", "Responses"].map((name) =>
    clientProtocols.find((protocol) => protocol.name === name),
  ) as [ClientProtocol, ClientProtocol];

  describe("endpoints beside generation", () => {
    for (const [method, action] of [
      ["GET", ""],
      ["DELETE", ""],
      ["POST", "/cancel"],
    ] as const) {
      it(`relays ${method} /v1/responses/{id}${action}, without a body`, () =>
        inScenario(harness, { protocol: responses, first: json(200, { id: "resp_1" }) }, async ({ ask, first }) => {
          const path = `/v1/responses/resp_1${action}`;
          const answer = await ask({ method, path, body: "" });
          assert.equal(answer.status, 200);
          assert.equal(answer.body.toString(), '{"id":"resp_1"}');
          const [request] = first.requests;
          assert.deepEqual([request?.method, request?.path, request?.body.length], [method, path, 0]);
        }));
    }

    it("counts tokens at the target of the model", () =>
      inScenario(harness, { protocol: messages, first: json(200, { input_tokens: 7 }) }, async ({ ask, first }) => {
        const answer = await ask({ path: "/v1/messages/count_tokens" });
        assert.equal(answer.body.toString(), '{"input_tokens":7}');
        assert.equal(first.requests[0]?.path, "/v1/messages/count_tokens");
      }));

    for (const app of [{}, { mount: "/llm" }]) {
      it(`lists the virtual models${"mount" in app ? " below a mount path" : ""}`, () =>
        inScenario(harness, { protocol: messages, first: [], app }, async ({ ask, first }) => {
          const answer = await ask({ method: "GET", path: "mount" in app ? "/llm/models" : "/v1/models" });
          assert.equal(headerOf(answer, "content-type"), "application/json");
          assert.deepEqual(
            (JSON.parse(answer.body.toString()) as { data: { id: string }[] }).data.map(({ id }) => id),
            ["fast"],
          );
          assert.equal(first.requests.length, 0);
        }));
    }
  });
}
