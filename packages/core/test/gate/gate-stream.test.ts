import { getEventListeners } from "node:events";
import { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { isGatewayError } from "../../src/errors.js";
import { gateStream, type GateStreamOptions } from "../../src/gate/gate-stream.js";
import { anthropicMessages } from "../../src/gate/protocols/anthropic-messages.js";
import {
  anthropicError,
  anthropicErrorAfterText,
  anthropicPreamble,
  anthropicTruncatedAfterText,
  chatHealthy,
  ManualClock,
  sseEvent,
} from "../../src/testing/index.js";
import { bytesOf, sourceOf } from "../fixtures/healthy.js";
import { anthropicOptions, bodyOf, healthy, read, rejectionOf, released, Tap, turn } from "./tap.js";

describe("a signal", () => {
  it("that is aborted already rejects without a read", async () => {
    const tap = new Tap().give(...healthy);
    expect(await rejectionOf(tap, { ...anthropicOptions, signal: AbortSignal.abort() })).toMatchObject({
      kind: "client-abort",
      status: 499,
    });
    expect(tap.reads).toBe(0);
    expect(tap.returned).toBe(1);
  });

  it("ends the gate while it holds", async () => {
    const clock = new ManualClock();
    const controller = new AbortController();
    const tap = new Tap().give(...anthropicPreamble());
    const pending = rejectionOf(tap, { ...anthropicOptions, clock, signal: controller.signal });
    await turn();
    controller.abort();
    expect(await pending).toMatchObject({ kind: "client-abort" });
    expect(tap.returned).toBe(1);
    expect(clock.pending).toBe(0);
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });

  it("ends the body while it waits for the source", async () => {
    const controller = new AbortController();
    const { clock, tap, body } = await released({ signal: controller.signal });
    const reading = read(body);
    await turn();
    controller.abort();
    await expect(reading).rejects.toMatchObject({ failure: { kind: "client-abort" } });
    expect(tap.returned).toBe(1);
    expect(clock.pending).toBe(0);
    expect(getEventListeners(controller.signal, "abort")).toEqual([]);
  });

  it("ends the body while nobody reads it", async () => {
    const controller = new AbortController();
    const { tap, body } = await released({ signal: controller.signal });
    tap.give(...healthy.slice(4));
    controller.abort();
    await expect(read(body)).rejects.toMatchObject({ code: "client_closed_request" });
  });
});

describe("a source", () => {
  it.each([
    ["rejects", () => new Tap().break(new Error("reset"))],
    [
      "throws at once",
      () => ({
        [Symbol.asyncIterator]: () => ({
          next: () => {
            throw new Error("reset");
          },
        }),
      }),
    ],
    ["yields no result", () => ({ [Symbol.asyncIterator]: () => ({ next: () => undefined as never }) })],
  ])("that %s is a failure, with the cause", async (_name, source) => {
    const failure = await rejectionOf(source(), anthropicOptions);
    expect(failure).toMatchObject({ kind: "empty-stream", status: 502, cause: expect.any(Error) });
  });

  it("that breaks while it is held is truncated", async () => {
    const tap = new Tap().give(...anthropicPreamble()).break(new Error("reset"));
    expect(await rejectionOf(tap, anthropicOptions)).toMatchObject({
      kind: "truncated-stream",
      code: "upstream_truncated_stream",
    });
  });

  it("that breaks after release breaks the body, after what had come", async () => {
    const { tap, body } = await released();
    tap.give(healthy[4] ?? "").break(new Error("reset"));
    expect(await body.next()).toMatchObject({ done: false, value: bytesOf(healthy[4] ?? "") });
    await expect(body.next()).rejects.toMatchObject({ failure: { kind: "network" } });
    expect(await body.next()).toEqual({ done: true, value: undefined });
  });

  it("that stalls on return() delays nothing", async () => {
    const tap = new Tap().give(anthropicError());
    tap.settles = false;
    expect(await rejectionOf(tap, anthropicOptions)).toMatchObject({ status: 503 });
    expect(tap.returned).toBe(1);
  });

  it.each([
    ["none", undefined],
    [
      "one that throws",
      () => {
        throw new Error("late");
      },
    ],
    ["one that rejects", () => Promise.reject(new Error("late"))],
    ["one that returns nothing", () => undefined],
  ])("with %s for a return() is left all the same", async (_name, leave) => {
    const next = (): Promise<IteratorResult<Uint8Array>> =>
      Promise.resolve({ done: false, value: bytesOf(anthropicError()) });
    const source = { [Symbol.asyncIterator]: () => ({ next, return: leave }) } as unknown as AsyncIterable<Uint8Array>;
    expect(await rejectionOf(source, anthropicOptions)).toMatchObject({ status: 503 });
    await turn();
  });

  it("that has ended is not asked again", async () => {
    const tap = new Tap().give(sseEvent({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })).end();
    const body = await bodyOf(gateStream(tap, { protocol: "openai-chat" }));
    expect(await read(body)).toContain("stop");
    expect(tap.reads).toBe(2);
    expect(tap.returned).toBe(0);
  });

  it("is read no further than the first output", async () => {
    const tap = new Tap().give(...healthy).end();
    await bodyOf(gateStream(tap, anthropicOptions));
    expect(tap.reads).toBe(4);
  });

  it("may be a Node stream or a fetch body", async () => {
    const text = healthy.join("");
    expect(await read(await bodyOf(gateStream(Readable.from([Buffer.from(text)]), anthropicOptions)))).toBe(text);
    const fetched = new Response(text).body as unknown as AsyncIterable<Uint8Array>;
    expect(await read(await bodyOf(gateStream(fetched, anthropicOptions)))).toBe(text);
  });
});

describe("the body", () => {
  it("ends the source when the reader breaks out of the loop", async () => {
    const { clock, tap, body } = await released();
    tap.give(healthy[4] ?? "");
    for await (const _part of body) break;
    expect(tap.returned).toBe(1);
    expect(clock.pending).toBe(0);
  });

  it("ends the source when it is left before it was read", async () => {
    const tap = new Tap().give(...healthy);
    const body = await bodyOf(gateStream(tap, anthropicOptions));
    await body.return?.();
    expect(tap.returned).toBe(1);
    expect(await body.next()).toEqual({ done: true, value: undefined });
  });

  it("ends at once when it is left while the source stalls", async () => {
    const { clock, tap, body } = await released();
    tap.settles = false;
    const waiting = body.next();
    await turn();
    expect(await body.return?.()).toEqual({ done: true, value: undefined });
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(tap.returned).toBe(1);
    expect(clock.pending).toBe(0);
  });

  it("ends the source when the Node stream made of it is destroyed in a stall", async () => {
    const { clock, tap, body } = await released();
    const stream = Readable.from(body);
    stream.resume();
    await turn();
    stream.destroy();
    await turn();
    expect(tap.returned).toBe(1);
    expect(clock.pending).toBe(0);
  });

  it("that is never read has no timer and no listener", async () => {
    const clock = new ManualClock();
    const { signal } = new AbortController();
    await gateStream(new Tap().give(...healthy), { ...anthropicOptions, clock, signal, ttftTimeoutMs: 9 });
    expect(clock.pending).toBe(0);
    expect(getEventListeners(signal, "abort")).toEqual([]);
  });

  it("answers reads that do not wait for one another in order", async () => {
    const tap = new Tap().give(...healthy).end();
    const body = await bodyOf(gateStream(tap, anthropicOptions));
    const results = await Promise.all(Array.from({ length: healthy.length + 2 }, () => body.next()));
    const parts = results.flatMap((result) => (result.done === true ? [] : [result.value]));
    expect(Buffer.concat(parts).toString()).toBe(healthy.join(""));
  });

  it("passes an in-band error on and ends without throwing", async () => {
    const text = anthropicErrorAfterText().join("");
    expect(await read(await bodyOf(gateStream(sourceOf([bytesOf(text)]), anthropicOptions)))).toBe(text);
  });

  it("that ends without the last event throws, unless that is not required", async () => {
    const chunks = anthropicTruncatedAfterText().map(bytesOf);
    const strict = await bodyOf(gateStream(sourceOf(chunks), anthropicOptions));
    await expect(read(strict)).rejects.toMatchObject({ code: "upstream_truncated_stream" });
    const lenient = await bodyOf(gateStream(sourceOf(chunks), { ...anthropicOptions, requireTerminal: false }));
    expect(await read(lenient)).toBe(anthropicTruncatedAfterText().join(""));
  });
});

describe("what the caller got wrong", () => {
  it.each([
    [
      "an unknown protocol",
      { protocol: "anthropic" },
      /^protocol: there is no protocol "anthropic"\. Take one of .*anthropic-messages/,
    ],
    ["a TTFT timeout of 0", { ttftTimeoutMs: 0 }, /^ttftTimeoutMs: must be a whole number from 1/],
    ["a TTFT timeout that is no number", { ttftTimeoutMs: Number.NaN }, /^ttftTimeoutMs/],
    ["an idle timeout beyond what timers keep", { idleTimeoutMs: 2 ** 31 }, /^idleTimeoutMs/],
    ["a negative limit", { maxHeldEvents: -1 }, /^maxHeldEvents: must be a whole number from 1/],
    [
      "a fraction of a lifecycle event",
      { maxLifecycleEvents: 1.5 },
      /^maxLifecycleEvents: must be a whole number from 0/,
    ],
    ["too few held bytes", { maxHeldBytes: 65_535 }, /^maxHeldBytes: must be a whole number from 65536/],
    ["a flag as text", { inBandErrors: "false" }, /^inBandErrors: must be true or false/],
    [
      "an unknown policy",
      { emptyCompletion: "retry" },
      /^emptyCompletion: must be one of auto, release, fallback, fail/,
    ],
    ["an unknown way to overflow", { onOverflow: "drop" }, /^onOverflow: must be one of release, fail/],
  ])("%s is a TypeError", async (_name, options, message) => {
    const bad = { ...anthropicOptions, ...options } as GateStreamOptions;
    const error = await gateStream(sourceOf([]), bad).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(TypeError);
    expect((error as Error).message).toMatch(message);
  });

  it.each([
    ["a string", "data: x\n\n"],
    ["nothing", undefined],
  ])("%s for a source is a TypeError", async (_name, source) => {
    await expect(gateStream(source as unknown as AsyncIterable<Uint8Array>, anthropicOptions)).rejects.toThrow(
      "source: must be an async iterable of bytes",
    );
  });

  it("a source of strings is a TypeError, and is left", async () => {
    const stream = Readable.from(healthy);
    await expect(gateStream(stream as AsyncIterable<Uint8Array>, anthropicOptions)).rejects.toThrow(
      "source: must yield Uint8Array chunks",
    );
    await turn();
    expect(stream.destroyed).toBe(true);
  });

  it("a protocol of their own that throws does not keep the source", async () => {
    const broken = {
      ...anthropicMessages,
      classify: () => {
        throw new RangeError("mine");
      },
    };
    const tap = new Tap().give(...healthy);
    await expect(gateStream(tap, { protocol: broken })).rejects.toThrow("mine");
    expect(tap.returned).toBe(1);
  });
});

describe("a rejection", () => {
  it("is an error with status, code, message and the provider's own type", async () => {
    const result = await gateStream(sourceOf([bytesOf(anthropicError())]), anthropicOptions);
    if (result.status === "released") throw new Error("released");
    expect(isGatewayError(result.error)).toBe(true);
    expect(result.error).toMatchObject({
      status: 503,
      code: "overloaded_error",
      type: "overloaded_error",
      message: "Overloaded",
      retryable: true,
    });
  });

  it("does not come for data that is nested deeper than the stack goes", async () => {
    const deep = `${"[".repeat(150_000)}"x"${"]".repeat(150_000)}`;
    const frames = [chatHealthy()[0] ?? "", `data: {"choices":[{"index":0,"delta":{"content":${deep}}}]}\n\n`];
    const result = await gateStream(sourceOf(frames.map(bytesOf)), { protocol: "openai-chat" });
    expect(result.status).toBe("released");
  });
});
