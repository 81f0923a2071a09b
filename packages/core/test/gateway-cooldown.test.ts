import { describe, expect, it } from "vitest";
import { anthropicErrorFirst } from "../src/testing/anthropic-streams.js";
import { chatHealthy, chatTextDeltas } from "../src/testing/chat-streams.js";
import { requestEnds, send, sendUnread, stage, story, type Stage } from "./fallback/serving.js";
import { answer, broken, end, mute, stream, type Script } from "./scripted-upstream.js";

const healthy = stream(chatHealthy(), end());
const down = answer(503, { error: { message: "overloaded" } });
const noRetry = { retry: { attempts: 0 } };

async function ask(scene: Stage, options: Parameters<typeof send>[1] = {}): Promise<ReturnType<typeof send>> {
  const run = send(scene, options);
  await scene.clock.advance(0);
  return run;
}

/** Two failures of `a`, which rests from then on. */
async function resting(a: Script | readonly Script[], config: object = noRetry): Promise<Stage> {
  const scene = stage({ targets: { a, b: healthy }, config });
  await ask(scene);
  await ask(scene);
  return scene;
}

describe("a target that failed twice", () => {
  it("is tried after the others, and told of", async () => {
    const scene = await resting(down);
    expect((await ask(scene)).attempts).toEqual(["b/x"]);
    expect(scene.observed.filter(({ type }) => type === "cooldown-start")).toMatchObject([
      { target: "a/x", streak: 1, attempt: 1 },
    ]);
  });

  it("rests for an in-band overload, too", async () => {
    const targets = { a: stream(anthropicErrorFirst(), end()), b: stream(anthropicErrorFirst(), end()) };
    const scene = stage({ targets, type: "anthropic", config: noRetry });
    await ask(scene, { api: "messages" });
    await ask(scene, { api: "messages" });
    expect(story(scene).filter((type) => type === "cooldown-start")).toHaveLength(2);
  });

  it("is tried all the same when all rest: the soonest back first, and its own failure is answered", async () => {
    const scene = stage({
      targets: { a: answer(503, {}, { "retry-after": "60" }), b: answer(429, {}, { "retry-after": "20" }) },
      config: noRetry,
    });
    await ask(scene);
    await ask(scene);
    const run = await ask(scene);
    expect(run.attempts).toEqual(["b/x", "a/x"]);
    expect(run.failed).toMatchObject({ status: 503, failure: { kind: "http" }, headers: { "retry-after": "20" } });
  });

  it("is probed by one of 200 requests when its rest is over, and is back when that succeeds", async () => {
    const scene = await resting([down, down, healthy]);
    await scene.clock.advance(30_000);
    const runs = Array.from({ length: 200 }, () => send(scene));
    await scene.clock.advance(0);
    expect(runs.filter(({ attempts }) => attempts[0] === "a/x")).toHaveLength(1);
    expect(runs.every(({ released }) => released?.status === 200)).toBe(true);
    expect(story(scene).filter((type) => type === "cooldown-end")).toHaveLength(1);
    expect((await ask(scene)).attempts).toEqual(["a/x"]);
  });

  it("rests twice as long when the probe fails", async () => {
    const scene = await resting(down);
    await scene.clock.advance(30_000);
    expect((await ask(scene)).attempts).toEqual(["a/x", "b/x"]);
    await scene.clock.advance(59_999);
    expect((await ask(scene)).attempts).toEqual(["b/x"]);
    await scene.clock.advance(1);
    expect((await ask(scene)).attempts).toEqual(["a/x", "b/x"]);
  });

  it.each(["while the answer is awaited", "before the attempt began"])(
    "is probed again when the client of the probe leaves %s",
    async (when) => {
      const scene = await resting([down, down, mute, healthy]);
      await scene.clock.advance(30_000);
      const client = new AbortController();
      const run = send(scene, { signal: client.signal });
      if (when === "while the answer is awaited") await scene.clock.advance(10);
      client.abort();
      await scene.clock.advance(0);
      expect(run.attempts).toEqual(["a/x"]);
      expect((await ask(scene)).attempts[0]).toBe("a/x");
    },
  );

  it("is not rested by TTFT timeouts", async () => {
    const scene = stage({ targets: { a: mute, b: healthy }, config: { ...noRetry, timeouts: { ttftTimeoutMs: 100 } } });
    for (let index = 0; index < 5; index += 1) {
      send(scene);
      await scene.clock.advance(100);
    }
    expect(story(scene)).not.toContain("cooldown-start");
  });

  it("rests for streams that break after release", async () => {
    const scene = stage({ targets: { a: stream([...chatTextDeltas()], broken()), b: healthy }, config: noRetry });
    await ask(scene);
    await ask(scene);
    expect(requestEnds(scene).map(({ outcome }) => outcome)).toEqual(["failure", "failure"]);
    expect((await ask(scene)).attempts).toEqual(["b/x"]);
  });

  it("never rests with `cooldown: false`", async () => {
    const scene = await resting(down, { ...noRetry, cooldown: false });
    expect((await ask(scene)).attempts).toEqual(["a/x", "b/x"]);
  });

  it("keeps a pinned conversation", async () => {
    const scene = await resting(down);
    const run = sendUnread(scene, { api: "responses", body: { previous_response_id: "resp_a", input: "hi" } });
    await scene.clock.advance(0);
    expect(run.attempts).toEqual(["b/x"]);
  });

  it("can be kept in a store of the host's", async () => {
    const rests = new Map<string, { until: number; streak: number }>();
    const store = {
      rest: (target: string) => rests.get(target),
      setRest: (target: string, rest?: { until: number; streak: number }) =>
        void (rest === undefined ? rests.delete(target) : rests.set(target, rest)),
      holder: () => undefined,
      setHolder: () => undefined,
    };
    await resting(down, { ...noRetry, store });
    expect([...rests.keys()]).toEqual(["a/x"]);
    expect(Math.abs((rests.get("a/x")?.until ?? 0) - Date.now() - 30_000)).toBeLessThan(5_000);
  });
});
