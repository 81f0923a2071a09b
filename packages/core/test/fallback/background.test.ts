import { describe, expect, it } from "vitest";
import { chatHealthy } from "../../src/testing/chat-streams.js";
import { responsesHealthy, responsesTruncatedAfterText } from "../../src/testing/responses-streams.js";
import { answer, connected, data, end, head, stream } from "../scripted-upstream.js";
import { expectClientAbort, watchRejections } from "./client-abort.js";
import { expectOver, send, sendUnread, stage } from "./serving.js";

const failing = answer(500, { error: { message: "no" } });
const whole = stream(chatHealthy(), end());

watchRejections();

describe("a background call", () => {
  const options = { api: "responses", body: { background: true } } as const;
  const left = (): AbortController => new AbortController();

  it("is relayed ungated", async () => {
    const scene = stage({ targets: { a: { steps: [connected(), head(), data("anything", 10), end()] } } });
    const run = send(scene, options);
    await scene.clock.advance(0);
    expect(run.released).toBeDefined();
    expect(scene.observed).toContainEqual(expect.objectContaining({ type: "release", reason: "ungated" }));
    await scene.clock.advance(10);
    expect(run.text).toBe("anything");
    expectOver(scene);
  });

  it("falls back and retries as any other", async () => {
    const scene = stage({ targets: { a: failing, b: stream(responsesHealthy(), end()) } });
    const run = send(scene, options);
    await scene.clock.advance(0);
    expect(run.attempts).toEqual(["a/x", "b/x"]);
  });

  it("is read to its end when the client leaves while streaming", async () => {
    const gone = left();
    const scene = stage({ targets: { a: stream(responsesTruncatedAfterText(), data("more", 100_000), end(100_000)) } });
    send(scene, { ...options, signal: gone.signal });
    await scene.clock.advance(0);
    gone.abort();
    expectClientAbort(scene, "streaming");
    await scene.clock.advance(200_000);
    expect(scene.upstream.calls[0]).toMatchObject({ over: true, abortedAt: undefined });
    expectOver(scene);
  });

  it("is not aborted when the client leaves before the head", async () => {
    const gone = left();
    const scene = stage({ targets: { a: { steps: [connected(), head(200, {}, 5_000), data("late"), end()] } } });
    const run = send(scene, { ...options, signal: gone.signal });
    await scene.clock.advance(1_000);
    gone.abort();
    await scene.clock.advance(4_000);
    await run.done;
    expect(run.released).toBeUndefined();
    expect(scene.upstream.calls[0]).toMatchObject({ over: true, abortedAt: undefined });
    expectClientAbort(scene, "waiting");
    expectOver(scene);
  });

  it.each([true, false])("is ended by its clocks (stream: %s)", async (streams) => {
    const gone = left();
    const scene = stage({ targets: { a: { steps: [connected(), head(200, {}), data("{")] } } });
    send(scene, { api: "responses", body: { background: true, stream: streams }, signal: gone.signal });
    await scene.clock.advance(0);
    gone.abort();
    await scene.clock.advance(600_000);
    expect(scene.upstream.calls[0].abortedAt).toBe(streams ? 301_000 : 601_000);
    expectOver(scene);
  });

  it("is ended by its clocks also where nothing was read when the client left", async () => {
    const gone = left();
    const scene = stage({ targets: { a: stream(["x".repeat(70_000)]) } });
    sendUnread(scene, { ...options, signal: gone.signal });
    await scene.clock.advance(10);
    expect(scene.upstream.calls[0].paused).toBe(true);
    gone.abort();
    await scene.clock.advance(300_000);
    expect(scene.upstream.calls[0].aborted).toBe(true);
    expectOver(scene);
  });

  it("tries no other target when the client has left", async () => {
    const gone = left();
    const scene = stage({ targets: { a: { steps: [connected(), head(500, {}, 1_000), end()] }, b: whole } });
    const run = send(scene, { ...options, signal: gone.signal });
    await scene.clock.advance(10);
    gone.abort();
    await scene.clock.advance(1_000);
    await run.done;
    expect(scene.upstream.calls).toHaveLength(1);
    expectOver(scene);
  });
});
