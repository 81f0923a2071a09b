import { describe, expect, it } from "vitest";
import { chatHealthy } from "../src/testing/chat-streams.js";
import { responsesHealthy } from "../src/testing/responses-streams.js";
import { send, stage, type RequestOptions, type Stage } from "./fallback/serving.js";
import { answer, end, stream } from "./scripted-upstream.js";

/** Which targets the requests were sent to, one after the other. */
async function sentTo(scene: Stage, ...requests: readonly RequestOptions[]): Promise<readonly string[]> {
  for (const options of requests) {
    send(scene, options);
    await scene.clock.advance(0);
  }
  return scene.upstream.calls.map(({ request }) => new URL(request.origin).hostname);
}

describe("a field named `conversation`", () => {
  it("means nothing in a call of another API", async () => {
    const body = { conversation: "conv_1" };
    const whole = stream(responsesHealthy(), end());
    const scene = stage({ targets: { a: [answer(500, {}), whole], b: stream(chatHealthy(), end()) } });
    expect(await sentTo(scene, { body }, { api: "responses", body })).toEqual(["a.test", "b.test", "a.test"]);
  });
});
