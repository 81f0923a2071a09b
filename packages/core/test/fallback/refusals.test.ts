import { describe, expect, it } from "vitest";
import { chatErrorAfterPreamble, chatHealthy } from "../../src/testing/chat-streams.js";
import { broken, connected, data, end, head, refusal, stream } from "../scripted-upstream.js";
import { expectOver, requestEnds, send, stage } from "./serving.js";

const healthy = stream(chatHealthy(), end());
const noRetry = { retry: { attempts: 0 } };

describe("a refusal before the stream", () => {
  it.each([400, 409, 413, 422])("%i ends the request", async (status) => {
    const scene = stage({ targets: { a: refusal(status), b: healthy } });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.failed).toMatchObject({ status, headers: { "x-should-retry": "false" } });
    expect(run.attempts).toEqual(["a/x"]);
    expectOver(scene);
  });

  it.each([401, 402, 403, 404, 408, 424, 429, 500, 502, 503, 529])("%i moves on", async (status) => {
    const scene = stage({ targets: { a: refusal(status), b: healthy } });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.attempts).toEqual(["a/x", "b/x"]);
    expect(run.end).toEqual({ type: "finish" });
    expectOver(scene);
  });

  it("a redirect is not followed and is a 502", async () => {
    const scene = stage({
      targets: { a: { steps: [connected(), head(302, { location: "http://evil.test/" }), end()] } },
      config: noRetry,
    });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.failed).toMatchObject({ status: 502, failure: { code: "upstream_invalid_body" } });
  });

  it("with a body without end is read in part", async () => {
    const scene = stage({
      targets: { a: { steps: [connected(), head(500, {}), data("x".repeat(70_000))] } },
      config: noRetry,
    });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.failed?.status).toBe(500);
    expectOver(scene);
  });

  it("that breaks off keeps its status", async () => {
    const scene = stage({ targets: { a: { steps: [connected(), head(418, {}), data('{"error":'), broken()] } } });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.failed?.status).toBe(418);
  });
});

describe("a network failure", () => {
  it.each([
    ["before the connection", { steps: [broken()] }, "upstream_connect_error", "network"],
    ["before the head", { steps: [connected(), broken()] }, "upstream_error", "network"],
    ["before the first event", { steps: [connected(), head(), broken()] }, "upstream_empty_stream", "empty-stream"],
    ["after an event", stream([chatHealthy()[0]], broken()), "upstream_truncated_stream", "truncated-stream"],
  ])("%s moves on", async (_name, script, code, kind) => {
    const scene = stage({ targets: { a: script, b: healthy } });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.rejects).toMatchObject([{ failure: { status: 502, code, kind } }]);
    expect(run.end).toEqual({ type: "finish" });
    expectOver(scene);
  });
});

describe("an HTTP client that answers before it returns", () => {
  it("is aborted where that answer ends the attempt", async () => {
    const script = { ...stream(chatErrorAfterPreamble()), inSend: true };
    const scene = stage({ targets: { a: script, b: healthy } });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(scene.upstream.to("http://a.test")[0].abortedAt).toBe(1000);
    expect(run.text).toBe(chatHealthy().join(""));
    expectOver(scene);
  });
});

describe("an HTTP client that throws", () => {
  it("is a bug that is recorded and thrown, and leaves no timer behind", async () => {
    const scene = stage({ targets: { a: healthy } });
    scene.upstream.send = () => {
      throw new TypeError("a bug");
    };
    const run = send(scene);
    await expect(run.done).rejects.toThrow("a bug");
    expect(requestEnds(scene)).toMatchObject([{ outcome: "failure", status: 500, failure: { kind: "internal" } }]);
    expectOver(scene);
  });
});

describe("an HTTP client whose headers throw when they are read", () => {
  it("is a bug that is recorded and thrown, and no rejection that nobody handles", async () => {
    const headers = Object.defineProperty({}, "retry-after", {
      get: () => {
        throw new TypeError("a bug");
      },
    });
    const script = { steps: [connected(), head(429, headers), data("{}"), end()], inSend: true };
    const scene = stage({ targets: { a: script }, config: noRetry });
    await expect(send(scene).done).rejects.toThrow("a bug");
    expect(requestEnds(scene)).toMatchObject([{ outcome: "failure", status: 500, failure: { kind: "internal" } }]);
    expectOver(scene);
  });
});

describe("bytes in an encoding that nobody knows", () => {
  it("fail the attempt, not the client", async () => {
    const scene = stage({
      targets: {
        a: { steps: [connected(), head(200, { "content-encoding": "x-lz" }), data("\u0001\u0002")] },
        b: healthy,
      },
    });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.rejects).toHaveLength(1);
    expect(run.text).toBe(chatHealthy().join(""));
  });
});
