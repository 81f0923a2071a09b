import { describe, expect, it } from "vitest";
import type { ReleasedEvent } from "../../src/events.js";
import { isGatewayError } from "../../src/errors.js";
import { chatError, chatHealthy, chatPreamble, chatTextDeltas } from "../../src/testing/chat-streams.js";
import {
  answer,
  broken,
  connected,
  data,
  end,
  head,
  mute,
  stream,
  unreachable,
  type Script,
} from "../scripted-upstream.js";
import { expectClientAbort, watchRejections } from "./client-abort.js";
import {
  expectOver,
  request,
  requestEnds,
  Run,
  send,
  sendUnread,
  stage,
  story,
  type Setup,
  type Stage,
} from "./serving.js";

const text = chatTextDeltas()[0];
const streaming = stream([...chatPreamble(), text]);
const failing = answer(500, { error: { message: "no" } });
const whole = stream(chatHealthy(), end());

watchRejections();

describe("a client that leaves before release", () => {
  const moments: readonly [string, Setup, number][] = [
    ["while connecting", { targets: { a: unreachable, b: whole } }, 100],
    ["while the provider is silent", { targets: { a: mute, b: whole } }, 100],
    ["while an error answer is read", { targets: { a: { steps: [connected(), head(500, {})] }, b: whole } }, 100],
    ["while the stream is held", { targets: { a: stream(chatPreamble()), b: whole } }, 100],
    ["in the second attempt", { targets: { a: failing, b: mute } }, 100],
    ["while backing off", { targets: { a: failing }, config: { retry: { attempts: 3, delayMs: 8000 } } }, 100],
  ];
  it.each(moments)("%s aborts the upstream at once and tries nothing more", async (_name, setup, ms) => {
    const left = new AbortController();
    const scene = stage(setup);
    const run = send(scene, { signal: left.signal });
    await scene.clock.advance(ms);
    const calls = scene.upstream.calls.length;
    left.abort();
    const last = scene.upstream.calls.at(-1);
    expect(last?.over === true || last?.aborted).toBe(true);
    await run.done;
    expect(run.released ?? run.failed).toBeUndefined();
    await scene.clock.advance(1_000_000);
    expect(scene.upstream.calls).toHaveLength(calls);
    expectClientAbort(scene, "waiting");
    expectOver(scene);
  });

  it("before anything was done makes no attempt", async () => {
    const scene = stage({ targets: { a: whole } });
    const run = send(scene, { signal: AbortSignal.abort() });
    await run.done;
    expect(scene.upstream.calls).toHaveLength(0);
    expect(run.events).toEqual([]);
    expectClientAbort(scene, "waiting");
    expectOver(scene);
  });

  it("in the very moment of release is answered nothing", async () => {
    const left = new AbortController();
    const scene = stage({ targets: { a: { steps: [] }, b: whole } });
    const run = send(scene, { signal: left.signal });
    await scene.clock.advance(0);
    scene.upstream.calls[0].deliver(connected(), head(), data(text));
    left.abort();
    await run.done;
    expect(run.released).toBeUndefined();
    expectClientAbort(scene, "waiting");
    expectOver(scene);
  });

  it("in the very moment of a rejection tries nothing more", async () => {
    const left = new AbortController();
    const scene = stage({ targets: { a: { steps: [] }, b: whole } });
    const run = send(scene, { signal: left.signal });
    await scene.clock.advance(0);
    scene.upstream.calls[0].deliver(broken());
    left.abort();
    await run.done;
    expect(scene.upstream.calls).toHaveLength(1);
    expectClientAbort(scene, "waiting");
    expectOver(scene);
  });
});

describe("a client that leaves while streaming", () => {
  it("by its signal aborts the upstream at once", async () => {
    const left = new AbortController();
    const scene = stage({ targets: { a: streaming, b: whole } });
    send(scene, { signal: left.signal });
    await scene.clock.advance(100);
    left.abort();
    expect(scene.upstream.calls[0].abortedAt).toBe(1100);
    expectClientAbort(scene, "streaming");
    expectOver(scene);
  });

  it("by cancelling the body aborts the upstream at once, once", async () => {
    const left = new AbortController();
    const scene = stage({ targets: { a: streaming } });
    const run = send(scene, { signal: left.signal });
    await scene.clock.advance(100);
    run.released?.body.cancel();
    run.released?.body.cancel();
    left.abort();
    expect(scene.upstream.calls[0].abortedAt).toBe(1100);
    expect(run.ends).toBe(0);
    expectClientAbort(scene, "streaming");
    expectOver(scene);
  });

  it("with bytes that it had not taken is recorded so although the provider was done", async () => {
    const scene = stage({ targets: { a: whole } });
    const run = sendUnread(scene);
    await scene.clock.advance(0);
    expect(requestEnds(scene)).toEqual([]);
    run.released?.body.cancel();
    expect(story(scene)).toEqual([
      "request-start",
      "attempt-start",
      "release",
      "stream-end",
      "client-abort",
      "request-end",
    ]);
    expectOver(scene);
  });

  it("when it has everything changes nothing", async () => {
    const left = new AbortController();
    const scene = stage({ targets: { a: whole } });
    const run = send(scene, { signal: left.signal });
    await scene.clock.advance(0);
    left.abort();
    run.released?.body.cancel();
    expect(requestEnds(scene)).toMatchObject([{ outcome: "success", status: 200 }]);
    expectOver(scene);
  });

  it("because of the error event that it got has seen a failure", async () => {
    const scene = stage({ targets: { a: stream([...chatPreamble(), text, chatError()]) } });
    const run = send(scene);
    await scene.clock.advance(0);
    run.released?.body.cancel();
    expect(requestEnds(scene)).toMatchObject([{ outcome: "failure", failure: { status: 500 } }]);
    expectOver(scene);
  });

  it("and took no byte for too long is recorded as the client's", async () => {
    const scene = stage({ targets: { a: streaming } });
    const run = send(scene);
    await scene.clock.advance(100);
    run.released?.body.cancel("write-stall");
    expect(requestEnds(scene)).toMatchObject([
      { outcome: "client-abort", status: 499, failure: { kind: "write-stall", status: 499 } },
    ]);
    expect(scene.upstream.calls[0].aborted).toBe(true);
    expectOver(scene);
  });
});

describe("a reader that iterates", () => {
  async function reading(
    script: Script,
    signal?: AbortSignal,
  ): Promise<{ scene: Stage; iterator: AsyncIterator<Uint8Array> }> {
    const scene = stage({ targets: { a: script } });
    const run = sendUnread(scene, signal === undefined ? {} : { signal });
    await scene.clock.advance(0);
    return { scene, iterator: (run.released as ReleasedEvent).body[Symbol.asyncIterator]() };
  }

  it("and waits is told when the client leaves", async () => {
    const left = new AbortController();
    const { scene, iterator } = await reading(streaming, left.signal);
    await iterator.next();
    const next = iterator.next();
    left.abort();
    await expect(next).rejects.toSatisfy((error) => isGatewayError(error) && error.status === 499);
    expect(await iterator.next()).toEqual({ done: true, value: undefined });
    expectOver(scene);
  });

  it("and stops while it waits for a silent provider aborts it at once", async () => {
    const { scene, iterator } = await reading(streaming);
    await iterator.next();
    const next = iterator.next();
    expect(await iterator.return?.()).toEqual({ done: true, value: undefined });
    expect(await next).toEqual({ done: true, value: undefined });
    expect(scene.upstream.calls[0].aborted).toBe(true);
    expectClientAbort(scene, "streaming");
    expectOver(scene);
  });
});

describe("a consumer that stops iterating", () => {
  it.each(["attempt-start", "attempt-reject"])("at %s has left", async (type) => {
    const scene = stage({ targets: { a: failing, b: whole } });
    const reading = (async () => {
      for await (const event of scene.gateway.handle(request())) if (event.type === type) break;
    })();
    await scene.clock.advance(0);
    await reading;
    await scene.clock.advance(1_000_000);
    expectClientAbort(scene, "waiting");
    expectOver(scene);
    await scene.gateway.close();
  });

  it("at the release still has the body", async () => {
    const scene = stage({ targets: { a: whole } });
    const reading = (async () => {
      for await (const event of scene.gateway.handle(request())) if (event.type === "released") return event.body;
      return undefined;
    })();
    await scene.clock.advance(0);
    const chunks: Uint8Array[] = [];
    for await (const chunk of (await reading) ?? []) chunks.push(chunk);
    expect(Buffer.concat(chunks).toString()).toBe(chatHealthy().join(""));
    expect(requestEnds(scene)).toMatchObject([{ outcome: "success" }]);
    expectOver(scene);
  });

  it("at the failure has had its answer", async () => {
    const scene = stage({ targets: { a: failing }, config: { retry: { attempts: 0 } } });
    const reading = (async () => {
      for await (const event of scene.gateway.handle(request())) if (event.type === "failed") break;
    })();
    await scene.clock.advance(0);
    await reading;
    expect(requestEnds(scene)).toMatchObject([{ outcome: "failure", status: 500 }]);
  });

  it("before the first event was never there", async () => {
    const scene = stage({ targets: { a: whole } });
    scene.gateway.handle(request());
    await scene.clock.advance(0);
    expect(scene.observed).toEqual([]);
    await scene.gateway.close();
  });
});

describe("many clients that leave at any moment", () => {
  it("leave nothing behind", async () => {
    const script = [failing, stream(chatPreamble(), data(text, 7), data(chatHealthy().slice(1).join(""), 7), end(7))];
    for (let moment = 0; moment < 60; moment += 1) {
      const gone = new AbortController();
      const scene = stage({ targets: { a: script }, config: { retry: { attempts: 1, delayMs: 20 } } });
      const run = new Run(scene.gateway, request({ signal: gone.signal }), true);
      for (let passed = 0; passed < moment; passed += 1) await scene.clock.advance(1);
      gone.abort();
      await run.done;
      await scene.clock.advance(100);
      expectOver(scene);
      expect(requestEnds(scene)[0].outcome).toBe(run.ends === 1 ? "success" : "client-abort");
    }
  });
});
