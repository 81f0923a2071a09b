import { describe, expect, it } from "vitest";
import { expectOver, request, requestEnds, Run, send, sendUnread, stage, story } from "./fallback/serving.js";
import { answer, connected, data, end, head, mute, stream } from "./scripted-upstream.js";

const hi = 'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n';
const done = "data: [DONE]\n\n";
const stop = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n';
const preamble = 'data: {"choices":[{"delta":{"role":"assistant"}}]}\n\n';

/** How far closing has come. */
function closing(world: ReturnType<typeof stage>, graceMs?: number): { closed: boolean } {
  const state = { closed: false };
  void world.gateway.close(graceMs === undefined ? undefined : { graceMs }).then(() => (state.closed = true));
  return state;
}

describe("close", () => {
  it("refuses new requests with 503 in the client's protocol, and asks them to connect anew", async () => {
    const world = stage({ targets: { a: mute }, type: "anthropic" });
    await world.gateway.close();
    const late = send(world, { api: "messages" });
    await late.done;
    expect(late.failed).toMatchObject({ status: 503, headers: { connection: "close" } });
    expect(JSON.parse(late.failed?.body ?? "")).toMatchObject({
      type: "error",
      error: { message: "The gateway is shutting down" },
    });
    expect(world.gateway.refusal()).toMatchObject({ kind: "shutdown" });
    expect(world.upstream.calls).toHaveLength(0);
  });

  it("lets an open stream come to its end", async () => {
    const world = stage({ targets: { a: stream([hi, done], end(5000)) } });
    const run = send(world);
    await world.clock.advance(10);
    const state = closing(world);
    await world.clock.advance(4000);
    expect(state.closed).toBe(false);
    await world.clock.advance(1000);
    expect(run.end).toEqual({ type: "finish" });
    expect(state.closed).toBe(true);
    expect(requestEnds(world)).toMatchObject([{ outcome: "success" }]);
    expectOver(world);
  });

  it("breaks a stream off after the grace period, with an error event, and records it as failed", async () => {
    const world = stage({ targets: { a: stream([hi]) } });
    const run = send(world);
    await world.clock.advance(10);
    const state = closing(world);
    await world.clock.advance(9_999);
    expect(run.end).toBeUndefined();
    await world.clock.advance(1);
    expect(run.end).toMatchObject({ type: "fail", failure: { kind: "shutdown" } });
    expect(run.text.slice(hi.length)).toMatch(/^\n\ndata: \{"error":\{"message":"The gateway is shutting down"/);
    expect(state.closed).toBe(true);
    expect(story(world).slice(-2)).toEqual(["stream-fail", "request-end"]);
    expect(requestEnds(world)).toMatchObject([{ outcome: "failure", status: 200 }]);
    expectOver(world);
  });

  it("appends nothing to an Anthropic stream", async () => {
    const text =
      'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}\n\n';
    const world = stage({ targets: { a: stream([text]) }, type: "anthropic" });
    const run = send(world, { api: "messages" });
    await world.clock.advance(10);
    closing(world, 0);
    await world.clock.advance(0);
    expect(run).toMatchObject({ text, end: { type: "fail" } });
    expectOver(world);
  });

  it("ends a stream well that is complete although the provider keeps it open", async () => {
    const world = stage({ targets: { a: stream([hi, stop]) } });
    const run = send(world);
    await world.clock.advance(10);
    closing(world, 100);
    await world.clock.advance(100);
    expect(run.end).toEqual({ type: "finish" });
    expect(requestEnds(world)).toMatchObject([{ outcome: "success" }]);
    expectOver(world);
  });

  it("answers a request that waits for its first output with 503 after the grace period, and tries no other target", async () => {
    const world = stage({ targets: { a: stream([preamble]), b: mute } });
    const run = send(world);
    await world.clock.advance(10);
    closing(world, 100);
    await world.clock.advance(99);
    expect(run.failed).toBeUndefined();
    await world.clock.advance(1);
    expect(run.failed).toMatchObject({ status: 503, failure: { kind: "shutdown" } });
    expect(world.upstream.calls).toHaveLength(1);
    expectOver(world);
  });

  it("ends a backoff with 503", async () => {
    const config = { retry: { attempts: 3, delayMs: 8000 } };
    const world = stage({ targets: { a: [answer(503, {}), mute] }, config, random: () => 0.99 });
    const run = send(world);
    await world.clock.advance(10);
    closing(world, 100);
    await world.clock.advance(100);
    expect(run.failed).toMatchObject({ status: 503, failure: { kind: "shutdown" } });
    expect(world.upstream.calls).toHaveLength(1);
    expectOver(world);
  });

  it("ends a request whose key is still being asked for", async () => {
    const asked = new Promise<string>(() => undefined);
    const world = stage({ targets: { a: mute }, providers: { a: { apiKey: () => asked } } });
    const run = send(world);
    await world.clock.advance(10);
    const state = closing(world, 0);
    await world.clock.advance(5000);
    expect(run.failed).toMatchObject({ status: 503, failure: { kind: "shutdown" } });
    expect(state.closed).toBe(true);
    expect(world.upstream.calls).toHaveLength(0);
  });

  it("sends those away at once who wait for a place", async () => {
    const world = stage({ targets: { a: mute }, config: { limits: { maxConcurrent: 1, maxQueue: 5 } } });
    send(world);
    const waiting = send(world);
    await world.clock.advance(10);
    closing(world);
    await waiting.done;
    expect(waiting.failed).toMatchObject({ status: 503, failure: { kind: "shutdown" } });
  });

  it("sends one away that was let in while the gateway began to close", async () => {
    const world = stage({ targets: { a: mute, b: mute }, config: { limits: { maxConcurrent: 1, maxQueue: 5 } } });
    const client = new AbortController();
    send(world, { signal: client.signal });
    const waiting = send(world);
    await world.clock.advance(10);
    client.abort();
    const state = closing(world);
    await waiting.done;
    await world.clock.advance(0);
    expect(waiting.failed).toMatchObject({ status: 503, failure: { kind: "shutdown" } });
    expect([world.upstream.calls.length, state.closed]).toEqual([1, true]);
  });

  it("does not wait for a reader that takes nothing", async () => {
    const world = stage({ targets: { a: stream([hi]) } });
    const run = sendUnread(world);
    await world.clock.advance(10);
    const state = closing(world, 50);
    await world.clock.advance(50);
    await world.clock.advance(1000);
    expect(run.released).toBeDefined();
    expect(state.closed).toBe(true);
    expect(world.upstream.calls[0]?.aborted).toBe(true);
  });

  it("ends a body that is queued for a reader which has stopped", async () => {
    // More than is handed over at once.
    const long = `: ${"x".repeat(70_000)}\n\n`;
    const world = stage({ targets: { a: stream([hi, long, done], end()) } });
    let ended: unknown;
    const run = sendUnread(world);
    await world.clock.advance(10);
    run.released?.body.pipeTo({ write: () => false, end: (bodyEnd) => (ended = bodyEnd) });
    const state = closing(world, 50);
    await world.clock.advance(49);
    expect(state.closed).toBe(false);
    await world.clock.advance(1);
    expect(ended).toMatchObject({ type: "fail", failure: { kind: "shutdown" } });
    expect(state.closed).toBe(true);
    expectOver(world);
  });

  it("ends a background call whose client has left", async () => {
    const leaving = new AbortController();
    const world = stage({ targets: { a: { steps: [connected(), head(), data("x"), data("y", 1000)] } } });
    const run = new Run(
      world.gateway,
      request({ api: "responses", body: { background: true }, signal: leaving.signal }),
      true,
    );
    await world.clock.advance(10);
    leaving.abort();
    await run.done;
    closing(world, 0);
    await world.clock.advance(0);
    expect(world.clock.pending).toBe(0);
  });

  it("is done once, whoever calls it", async () => {
    const world = stage({ targets: { a: mute } });
    expect(world.gateway.close()).toBe(world.gateway.close({ graceMs: 5 }));
    await world.gateway.close();
    await expect(stage({ targets: { a: mute } }).gateway.close({ graceMs: -1 })).rejects.toThrow("graceMs");
  });
});
