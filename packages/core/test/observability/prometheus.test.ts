import { Registry } from "prom-client";
import { describe, expect, it } from "vitest";
import { createGateway } from "../../src/gateway.js";
import { prometheusObserver } from "../../src/observability/prometheus.js";
import { ManualClock } from "../../src/testing/manual-clock.js";
import { anthropicErrorFirst, anthropicHealthy } from "../../src/testing/anthropic-streams.js";
import { chatCompletion, chatHealthy } from "../../src/testing/chat-streams.js";
import { answer, end, ScriptedUpstream, stream, type Script } from "../scripted-upstream.js";
import { request, Run, send } from "../fallback/serving.js";
import { parseMetrics } from "./prometheus-text.js";
import { watch } from "./watched.js";

const whole = stream(chatHealthy(), end());

/** A gateway that serves every model of a provider by name, and the names of one label. */
async function ask(models: readonly string[], script: Script, maxLabelValues: number): Promise<Set<string>> {
  const clock = new ManualClock();
  const register = new Registry();
  const config = {
    providers: { p: { type: "openai-compatible", baseUrl: "http://p.test/v1" } },
    observers: [prometheusObserver({ register, maxLabelValues })],
    retry: { attempts: 0 },
  } as const;
  const gateway = createGateway(config, { clock, client: new ScriptedUpstream(clock, { "http://p.test": script }) });
  for (const model of models) {
    void new Run(gateway, request({ body: { model } }), true);
    await clock.advance(0);
  }
  const { samples } = parseMetrics(await register.metrics()).get("first_chunk_requests_total")!;
  return new Set(samples.map(({ labels }) => `${labels["model"]} at ${labels["target"]}`));
}

describe("label values", () => {
  it("are bounded for models that clients name", async () => {
    const names = await ask(["p/1", "p/2", "p/3", "p/4"], whole, 2);
    expect(names).toEqual(new Set(["p/1 at p/1", "p/2 at p/2", "other at other"]));
  });

  it("give no place to a name that no provider answered", async () => {
    const names = await ask(
      ["p/made-up-1", "p/made-up-2"],
      answer(404, { error: { message: "no", code: "model_not_found" } }),
      100,
    );
    expect(names).toEqual(new Set(["other at other"]));
  });

  it("are bounded for metadata, and quoted", async () => {
    const scene = watch({ targets: { a: whole } }, { metadataLabels: ["team-name"], maxLabelValues: 2 });
    for (const team of ['"a"\n\\', "b", "c", "d"]) {
      send(scene, { headers: { "x-tfy-metadata": JSON.stringify({ "team-name": team, other: "x" }) } });
      await scene.clock.advance(0);
    }
    const { samples } = parseMetrics(await scene.registry.metrics()).get("first_chunk_requests_total")!;
    expect(samples.map(({ labels, value }) => [labels["metadata_team_name"], value])).toEqual([
      ['\\"a\\"\\n\\\\', 1],
      ["b", 1],
      ["other", 2],
    ]);
  });

  it("are bounded for codes that providers send", async () => {
    const answers = ["a", "b", "c"].map((code) => answer(500, { error: { code, message: "m" } }));
    const scene = watch(
      { targets: { a: answers }, config: { retry: { attempts: 0 }, cooldown: false } },
      { maxLabelValues: 1 },
    );
    for (const _ of answers) send(scene);
    await scene.clock.advance(0);
    expect(await scene.count("attempt_failures_total", { code: "a" })).toBe(1);
    expect(await scene.count("attempt_failures_total", { code: "other" })).toBe(2);
  });
});

describe("metrics", () => {
  it("count the tokens of answers and of rejected attempts", async () => {
    const scene = watch({
      type: "anthropic",
      targets: {
        a: stream([...anthropicHealthy().slice(0, 1), ...anthropicErrorFirst()]),
        b: stream(anthropicHealthy(), end()),
      },
      config: { retry: { attempts: 0 } },
    });
    send(scene, { api: "messages" });
    await scene.clock.advance(0);
    const ended = scene.observed.find((event) => event.type === "stream-end");
    expect(ended?.usage).toEqual({ inputTokens: 25, outputTokens: 15 });
    expect(await scene.count("tokens_total", { target: "b/x", type: "output", outcome: "success" })).toBe(15);
    expect(await scene.count("tokens_total", { target: "a/x", type: "input", outcome: "failure" })).toBe(25);
  });

  it("count the tokens of an answer that is no stream", async () => {
    const scene = watch({ targets: { a: answer(200, chatCompletion()) } });
    send(scene, { body: { stream: false } });
    await scene.clock.advance(0);
    expect(await scene.count("tokens_total", { type: "output" })).toBeGreaterThan(0);
  });

  it("tell a request that was refused before an attempt", async () => {
    const scene = watch({ targets: { a: whole } });
    for (const body of [{ model: "unheard-of" }, { model: 7 }]) {
      send(scene, { body });
      await scene.clock.advance(0);
    }
    expect(scene.observed.map(({ type }) => type)).toEqual([
      "request-start",
      "request-end",
      "request-start",
      "request-end",
    ]);
    expect(await scene.count("requests_total", { outcome: "refused", status: 404, model: "unknown", target: "" })).toBe(
      1,
    );
    expect(await scene.count("requests_total", { outcome: "refused", status: 400 })).toBe(1);
    expect(await scene.count("open_requests")).toBe(0);
  });

  it("tell that a target rests, until its time is over", async () => {
    const scene = watch({ targets: { a: answer(500, {}), b: whole } });
    for (const _ of [1, 2]) {
      send(scene);
      await scene.clock.advance(0);
    }
    expect(await scene.count("cooldowns_total", { target: "a/x" })).toBe(1);
    expect(await scene.count("target_resting", { target: "a/x" })).toBe(1);
  });

  it("have no overhead on virtual time, where only attempts and waits take any", async () => {
    const scene = watch({
      targets: { a: [answer(500, {}), stream(chatHealthy(), end(40))] },
      config: { retry: { attempts: 1, delayMs: 100 } },
    });
    send(scene);
    await scene.clock.advance(1000);
    expect(scene.observed.at(-1)).toMatchObject({ type: "request-end", durationMs: 90, overheadMs: 0 });
    expect(await scene.count("retries_total")).toBe(1);
  });

  it("are refused twice by one registry, and a wrong limit at once", () => {
    const register = new Registry();
    prometheusObserver({ register });
    expect(() => prometheusObserver({ register })).toThrow(/already been registered/);
    expect(() => prometheusObserver({ register, prefix: "second_" })).not.toThrow();
    expect(() => prometheusObserver({ register: new Registry(), maxLabelValues: 0 })).toThrow(/maxLabelValues/);
  });
});
