import { describe, expect, it } from "vitest";
import { failureLevel } from "../../src/observability/log.js";
import { answer, broken, connected, end, stream } from "../scripted-upstream.js";
import { anthropicHealthy } from "../../src/testing/anthropic-streams.js";
import { send, stage } from "../fallback/serving.js";
import { recordingLogger, watch, type LogLine } from "./watched.js";

describe("the log", () => {
  it("holds no byte of a body, no header value, no credential and no message of an error", async () => {
    const canary = "canary-1f3a";
    const failing = new Error(`${canary} in the host's vault`);
    const scene = watch({
      type: "anthropic",
      targets: {
        a: answer(
          400,
          { error: { type: `${canary} as a type`, code: `${canary} is no code`, message: canary } },
          { "request-id": canary },
        ),
        b: { steps: [connected(), broken(`${canary} read`)] },
        c: answer(401, { error: { type: "authentication_error", message: `wrong key ${canary}` } }),
        d: stream(anthropicHealthy({ text: canary }), end()),
      },
      providers: { c: { apiKey: () => Promise.reject(failing) }, d: { apiKey: canary, headers: { "x-own": canary } } },
      config: { retry: { attempts: 0 }, fallbackStatusCodes: ["4xx", "5xx"] },
    });
    const run = send(scene, {
      api: "messages",
      headers: { authorization: `Bearer ${canary}`, "anthropic-beta": canary, cookie: canary },
      body: { messages: [{ role: "user", content: canary }], system: canary },
    });
    await scene.clock.advance(0);
    expect(run.text).toContain(canary);
    expect(scene.lines.map(({ message }) => message)).toEqual([
      "attempt rejected",
      "attempt rejected",
      "attempt rejected",
      "request ended",
    ]);
    expect(
      JSON.stringify([
        scene.lines,
        scene.observed,
        scene.spans().map(({ attributes, events, status }) => [attributes, events, status]),
      ]),
    ).not.toContain(canary);
    expect(await scene.registry.metrics()).not.toContain(canary);
  });

  it("has names, codes and times", async () => {
    const scene = watch({
      targets: { a: answer(429, { error: { code: "rate_limit_exceeded", message: "slow" } }) },
      config: { retry: { attempts: 0 } },
    });
    send(scene);
    await scene.clock.advance(0);
    const { requestId } = scene.observed[0];
    const failed = { status: 429, code: "rate_limit_exceeded", kind: "http" };
    expect(scene.lines.map(({ facts }) => facts)).toEqual([
      { requestId, target: "a/x", attempt: 1, durationMs: 0, ...failed },
      {
        requestId,
        protocol: "openai-chat",
        model: "m",
        outcome: "failure",
        attempts: 1,
        target: "a/x",
        durationMs: 0,
        ...failed,
      },
    ]);
  });

  it("tells a refused request at debug", () => {
    const scene = watch({ targets: { a: stream([]) } });
    const route = scene.gateway.match("POST", "/v1/chat/completions", false)!;
    scene.gateway.refuse(route, {
      kind: "bad-request",
      status: 413,
      code: "request_too_large",
      message: "",
      retryable: false,
    });
    expect(scene.lines).toMatchObject([
      { level: "debug", message: "request ended", facts: { outcome: "refused", status: 413, attempts: 0 } },
    ]);
  });

  it("is written by a logger whose methods need their `this`", async () => {
    class Own {
      readonly lines: LogLine[] = [];
      readonly #inner = recordingLogger(this.lines);
      debug(facts: object, message: string): void {
        this.#inner.debug(facts, message);
      }
      info(facts: object, message: string): void {
        this.#inner.info(facts, message);
      }
      warn(facts: object, message: string): void {
        this.#inner.warn(facts, message);
      }
      error(facts: object, message: string): void {
        this.#inner.error(facts, message);
      }
    }
    const logger = new Own();
    const scene = stage({ targets: { a: answer(500, {}) }, config: { logger, retry: { attempts: 0 } } });
    send(scene);
    await scene.clock.advance(0);
    expect(logger.lines.at(-1)).toMatchObject({ level: "warn", message: "request ended" });
  });
});

it("is quiet for what is part of daily life", () => {
  const base = { status: 503, retryable: true, kind: "http" } as const;
  expect(failureLevel({ ...base, code: "overloaded_error" })).toBe("debug");
  expect(failureLevel({ ...base, code: "x", type: "overloaded_error" })).toBe("debug");
  expect(failureLevel({ ...base, code: "server_is_overloaded" })).toBe("warn");
  expect(failureLevel({ ...base, kind: "internal", code: "internal_error" })).toBe("error");
});
