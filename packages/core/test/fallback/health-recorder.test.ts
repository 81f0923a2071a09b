import { describe, expect, it } from "vitest";
import { HealthRecorder } from "../../src/fallback/health-recorder.js";
import { Health } from "../../src/health/health.js";
import type { LatencyMeans } from "../../src/health/latency.js";
import { MemoryHealthStore } from "../../src/health/store.js";
import { ManualClock } from "../../src/testing/manual-clock.js";
import { chatHealthy } from "../../src/testing/chat-streams.js";
import { answer, data, end, head, connected } from "../scripted-upstream.js";
import { send, stage } from "./serving.js";

function measured(streaming: boolean, tell: (recorder: HealthRecorder) => void): LatencyMeans {
  const clock = new ManualClock();
  const health = new Health({
    cooldown: false,
    store: new MemoryHealthStore(),
    clock,
    epochOffset: 0,
    measures: true,
  });
  tell(new HealthRecorder(health.begin("a/x"), streaming, { onCooldown: () => undefined }));
  return health.latency("a/x");
}

const whole = { complete: true, durationMs: 1_300, bytes: 16_000, pausedMs: 0, usage: { outputTokens: 50 } };

describe("a stream that came to its end", () => {
  it("tells the time to its first output, and the time per token from there on", () => {
    const means = measured(true, (recorder) => {
      recorder.released("output", 300);
      recorder.ended(whole);
    });
    expect(means).toEqual({ samples: 1, ttftMs: 300, timePerOutputTokenMs: 20 });
  });

  it("is estimated by its bytes where the provider reports no tokens", () => {
    const means = measured(true, (recorder) => {
      recorder.released("output", 300);
      recorder.ended({ ...whole, usage: undefined });
    });
    expect(means.timePerOutputTokenMs).toBe(10);
  });

  it("does not pay for a client that reads slowly", () => {
    const means = measured(true, (recorder) => {
      recorder.released("output", 300);
      recorder.ended({ ...whole, durationMs: 61_300, pausedMs: 60_000 });
    });
    expect(means.timePerOutputTokenMs).toBe(20);
  });
});

it("measures an answer that is not streamed as a whole", () => {
  const means = measured(false, (recorder) => {
    recorder.released("ungated", 1_200);
    recorder.ended(whole);
  });
  expect(means).toEqual({ samples: 1, ttftMs: undefined, timePerOutputTokenMs: 26 });
});

describe("nothing is measured", () => {
  it.each([
    ["of a stream that broke", "output", { ...whole, complete: false }],
    ["of a stream that was released at a limit", "overflow", whole],
  ])("%s", (_name, reason, facts) => {
    const means = measured(true, (recorder) => {
      recorder.released(reason, 300);
      recorder.ended(facts);
    });
    expect(means.samples).toBe(0);
  });
});

describe("latency routing in the gateway", () => {
  const model = { routing: "latency" } as const;
  const config = { retry: { attempts: 0 } };

  it("goes by the tokens that streams report", async () => {
    const usage = (tokens: number): string => `data: {"choices":[],"usage":{"completion_tokens":${tokens}}}\n\n`;
    const [text, ...rest] = chatHealthy();
    const script = (ms: number, tokens: number): object => ({
      steps: [
        connected(),
        head(),
        data(text),
        ...rest.slice(0, -1).map((chunk) => data(chunk, ms)),
        data(usage(tokens)),
        data(rest.at(-1) ?? ""),
        end(),
      ],
    });
    const targets = { a: script(10, 10), b: script(30, 1_000) } as never;
    const scene = stage({ targets, model, config });
    for (let index = 0; index < 12; index += 1) {
      send(scene);
      await scene.clock.advance(1_000);
    }
    const last = send(scene);
    await scene.clock.advance(1_000);
    expect(scene.upstream.to("http://a.test")).toHaveLength(3);
    expect(last.attempts).toEqual(["b/x"]);
  });

  it("reads the usage of answers that are not streamed, also where nobody observes", async () => {
    const body = (tokens: number): object => ({
      choices: [{ message: { content: "hi" }, finish_reason: "stop" }],
      usage: { completion_tokens: tokens },
    });
    const slow = (tokens: number): object => ({
      steps: answer(200, body(tokens)).steps.map((step, index) => (index === 1 ? { ...step, after: 100 } : step)),
    });
    const scene = stage({ targets: { a: slow(10), b: slow(1_000) } as never, model, config });
    for (let index = 0; index < 12; index += 1) {
      send(scene, { body: { stream: false } });
      await scene.clock.advance(1_000);
    }
    expect(scene.upstream.to("http://a.test")).toHaveLength(3);
  });
});
