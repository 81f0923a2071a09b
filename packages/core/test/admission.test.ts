import { describe, expect, it } from "vitest";
import { Admission } from "../src/admission.js";
import { ManualClock } from "../src/testing/manual-clock.js";
import { end, mute, stream } from "./scripted-upstream.js";
import { expectOver, requestEnds, send, sendUnread, stage, story } from "./fallback/serving.js";

const never = new AbortController().signal;

function admission(maxConcurrent: number | undefined, maxQueue: number) {
  const clock = new ManualClock();
  return { clock, places: new Admission({ maxConcurrent, maxQueue, queueTimeoutMs: 500 }, clock) };
}

describe("places", () => {
  it("have no limit by default", () => {
    const { places } = admission(undefined, 0);
    for (let index = 0; index < 1000; index += 1) expect(places.tryEnter()).toBe(true);
    expect(places.full).toBe(false);
  });

  it("go to those who wait in the order in which they came", async () => {
    const { places, clock } = admission(1, 3);
    places.tryEnter();
    const order: number[] = [];
    const waits = [1, 2, 3].map((who) => places.wait(never).then(() => order.push(who)));
    for (const wait of waits) {
      places.leave();
      await wait;
    }
    expect(order).toEqual([1, 2, 3]);
    expect(clock.pending).toBe(0);
  });

  it("are not taken past those who wait", async () => {
    const { places } = admission(1, 1);
    places.tryEnter();
    const wait = places.wait(never);
    places.leave();
    expect(places.tryEnter()).toBe(false);
    expect(await wait).toBeUndefined();
  });

  it("in the queue are limited, and refused at once beyond that", async () => {
    const { places } = admission(1, 1);
    places.tryEnter();
    void places.wait(never);
    expect(places.full).toBe(true);
    expect(await places.wait(never)).toMatchObject({ status: 503, code: "gateway_overloaded", retryAfterMs: 1000 });
  });

  it("in the queue are given up when the client leaves, and the next one moves up", async () => {
    const { places, clock } = admission(1, 2);
    places.tryEnter();
    const leaving = new AbortController();
    const first = places.wait(leaving.signal);
    const second = places.wait(never);
    leaving.abort();
    expect(await first).toMatchObject({ kind: "client-abort" });
    places.leave();
    expect(await second).toBeUndefined();
    expect(clock.pending).toBe(0);
  });

  it("are not waited for by a client that has left", async () => {
    const { places } = admission(1, 1);
    places.tryEnter();
    expect(await places.wait(AbortSignal.abort())).toMatchObject({ kind: "client-abort" });
    expect(places.full).toBe(false);
  });

  it("are waited for no longer than the timeout", async () => {
    const { places, clock } = admission(1, 1);
    places.tryEnter();
    const wait = places.wait(never);
    await clock.advance(499);
    expect(places.full).toBe(true);
    await clock.advance(1);
    expect(await wait).toMatchObject({ kind: "overload" });
    expect(places.full).toBe(false);
  });
});

const healthy = stream(['data: {"choices":[{"delta":{"content":"hi"}}]}\n\n', "data: [DONE]\n\n"], end(50));
const limits = { maxConcurrent: 1, maxQueue: 1, queueTimeoutMs: 1000 };

describe("a gateway at its limit", () => {
  it("lets a request wait until another has ended, its body included", async () => {
    const world = stage({ targets: { a: healthy }, config: { limits } });
    const first = send(world);
    const second = send(world);
    await world.clock.advance(40);
    expect(first.released).toBeDefined();
    expect(world.upstream.calls).toHaveLength(1);
    await world.clock.advance(20);
    expect(world.upstream.calls).toHaveLength(2);
    await world.clock.advance(100);
    expect(second.end).toEqual({ type: "finish" });
    expectOver(world, 2);
  });

  it("answers beyond the queue with 503 and Retry-After at once, and records it", async () => {
    const world = stage({ targets: { a: healthy }, config: { limits } });
    send(world);
    send(world);
    await world.clock.advance(0);
    expect(world.gateway.refusal()).toMatchObject({ code: "gateway_overloaded" });
    const third = send(world);
    await third.done;
    expect(third.failed).toMatchObject({ status: 503, headers: { "retry-after": "1", "x-tfy-attempts": "0" } });
    expect(third.failed?.headers["x-should-retry"]).toBeUndefined();
    expect(requestEnds(world)).toMatchObject([{ outcome: "refused", status: 503, attempts: 0 }]);
    await world.clock.advance(200);
    expect(world.gateway.refusal()).toBeUndefined();
    expectOver(world, 3);
  });

  it("is freed by a request that fails, by one whose client leaves, and by one that is read no further", async () => {
    const world = stage({ targets: { a: mute }, config: { limits, timeouts: { ttftTimeoutMs: 100 } } });
    const leaving = new AbortController();
    send(world);
    const second = send(world, { signal: leaving.signal });
    await world.clock.advance(100);
    expect(world.upstream.calls).toHaveLength(2);
    leaving.abort();
    await second.done;
    const third = world.gateway.handle({
      method: "POST",
      url: "/v1/chat/completions",
      headers: {},
      body: Buffer.from('{"model":"m","stream":true}'),
      signal: never,
    });
    const iterator = third[Symbol.asyncIterator]();
    expect((await iterator.next()).value).toMatchObject({ type: "attempt-start" });
    await iterator.return?.();
    const fourth = send(world);
    await world.clock.advance(100);
    expect(fourth.failed?.status).toBe(408);
    expectOver(world, 4);
  });

  it("records a client that leaves the queue as such, and calls no provider for it", async () => {
    const world = stage({ targets: { a: mute }, config: { limits } });
    sendUnread(world);
    const leaving = new AbortController();
    const waiting = send(world, { signal: leaving.signal });
    await world.clock.advance(10);
    leaving.abort();
    await waiting.done;
    expect(waiting.events).toEqual([]);
    expect(story(world).slice(-2)).toEqual(["client-abort", "request-end"]);
    expect(requestEnds(world)).toMatchObject([{ outcome: "client-abort", status: 499, attempts: 0 }]);
    expect(world.upstream.calls).toHaveLength(1);
  });
});
