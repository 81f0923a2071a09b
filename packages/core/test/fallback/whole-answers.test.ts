import { describe, expect, it } from "vitest";
import { answer, broken, connected, data, end, head, type Script } from "../scripted-upstream.js";
import { expectOver, requestEnds, send, stage, story, type Stage, type Run } from "./serving.js";

const json = { "content-type": "application/json" };
const half = data('{"choices":[{"message":{"content":"H');
const breaks: Script = { steps: [connected(), head(200, json), half, broken()] };
const whole = answer(200, { choices: [{ message: { content: "Hi" } }] });
const plain = { body: { stream: false } } as const;

async function served(scene: Stage): Promise<Run> {
  const run = send(scene, plain);
  await scene.clock.advance(0);
  return run;
}

describe("an answer that is not a stream", () => {
  it("and breaks in the middle is a broken body without an event, and a failure of its target", async () => {
    const scene = stage({ targets: { a: breaks, b: whole } });
    const run = await served(scene);
    expectOver(scene);
    expect(run.released?.status).toBe(200);
    expect(run.text).toBe('{"choices":[{"message":{"content":"H');
    expect(run.end).toMatchObject({ type: "fail", failure: { kind: "network", status: 502 } });
    expect(story(scene)).toEqual(["request-start", "attempt-start", "release", "stream-fail", "request-end"]);
    expect(requestEnds(scene)).toMatchObject([{ outcome: "failure", status: 200, failure: { status: 502 } }]);
  });

  it("and breaks twice makes the target rest", async () => {
    const scene = stage({ targets: { a: [breaks, breaks], b: whole } });
    await served(scene);
    await served(scene);
    expect((await served(scene)).attempts).toEqual(["b/x"]);
  });

  it("falls back for a status, and for a connection that breaks before its head", async () => {
    for (const failing of [answer(500, {}), { steps: [connected(), broken()] }]) {
      const run = await served(stage({ targets: { a: failing, b: whole } }));
      expect(run.attempts).toEqual(["a/x", "b/x"]);
      expect(run.text).toContain("Hi");
    }
  });

  it("passes on an error object under a 200 as it is: the status is the provider's word", async () => {
    const body = JSON.stringify({ error: { message: "no" } });
    const run = await served(stage({ targets: { a: { steps: [connected(), head(200, json), data(body), end()] } } }));
    expect([run.released?.status, run.text]).toEqual([200, body]);
  });
});
