import { describe, expect, it } from "vitest";
import { gateStream } from "../../src/gate/gate-stream.js";
import {
  anthropicPreamble,
  ManualClock,
  responsesSplitFailure,
  sseComment,
  sseEvent,
} from "../../src/testing/index.js";
import { anthropicOptions, bodyOf, healthy, read, rejectionOf, released, Tap } from "./tap.js";

describe("a clock", () => {
  it("of the TTFT rejects with 408 and leaves the source", async () => {
    const clock = new ManualClock();
    const tap = new Tap().give(...anthropicPreamble());
    const pending = rejectionOf(tap, { ...anthropicOptions, clock, ttftTimeoutMs: 30_000 });
    await clock.advance(29_999);
    expect(tap.returned).toBe(0);
    await clock.advance(1);
    expect(await pending).toMatchObject({
      status: 408,
      message: "TTFT timeout: no first chunk received (timeout=30000ms)",
      alwaysFallBack: true,
    });
    expect(tap.returned).toBe(1);
    expect(clock.pending).toBe(0);
  });

  it("of the TTFT is not re-armed by pings, comments and lifecycle events", async () => {
    const clock = new ManualClock();
    const tap = new Tap();
    const pending = rejectionOf(tap, { ...anthropicOptions, clock, ttftTimeoutMs: 1_000 });
    for (let count = 0; count < 9; count += 1) {
      tap.give(sseComment("x"), sseEvent({ type: "ping" }, "ping"));
      await clock.advance(100);
    }
    await clock.advance(100);
    expect(await pending).toMatchObject({ kind: "ttft-timeout" });
  });

  it("of the TTFT wins over an idle clock that is due at the same moment", async () => {
    const clock = new ManualClock();
    const pending = rejectionOf(new Tap(), { ...anthropicOptions, clock, ttftTimeoutMs: 500, idleTimeoutMs: 500 });
    await clock.advance(500);
    expect(await pending).toMatchObject({ kind: "ttft-timeout" });
  });

  it("of the TTFT has no effect after release", async () => {
    const { clock, tap, body } = await released({ ttftTimeoutMs: 1_000 });
    const reading = read(body);
    await clock.advance(5_000);
    tap.give(...healthy.slice(4)).end();
    expect(await reading).toContain("message_stop");
  });

  it("for silence rejects with 504, and any byte re-arms it", async () => {
    const clock = new ManualClock();
    const tap = new Tap();
    const pending = rejectionOf(tap, { ...anthropicOptions, clock, idleTimeoutMs: 1_000 });
    await clock.advance(900);
    tap.give(":");
    await clock.advance(900);
    expect(tap.returned).toBe(0);
    await clock.advance(100);
    expect(await pending).toMatchObject({ status: 504, kind: "idle-timeout" });
  });

  it("for silence is 300 s where nothing is set", async () => {
    const clock = new ManualClock();
    const pending = rejectionOf(new Tap(), { ...anthropicOptions, clock });
    await clock.advance(299_999);
    await clock.advance(1);
    expect(await pending).toMatchObject({ message: "Idle timeout: the provider sent nothing (timeout=300000ms)" });
  });

  it("for silence breaks the body after release", async () => {
    const { clock, tap, body } = await released({ idleTimeoutMs: 1_000 });
    const reading = read(body).catch((error: unknown) => error);
    await clock.advance(1_000);
    expect(await reading).toMatchObject({ failure: { kind: "idle-timeout" } });
    expect(tap.returned).toBe(1);
    expect(clock.pending).toBe(0);
  });

  it("for silence ends a complete body as complete, and leaves the source", async () => {
    const { clock, tap, body } = await released({ idleTimeoutMs: 1_000 });
    tap.give(...healthy.slice(4));
    const reading = read(body);
    await clock.advance(1_000);
    expect(await reading).toContain("message_stop");
    expect(tap.returned).toBe(1);
  });

  it("does not run while the reader is busy", async () => {
    const { clock, tap, body } = await released({ idleTimeoutMs: 1_000 });
    await clock.advance(10_000);
    tap.give(...healthy.slice(4)).end();
    expect(await read(body)).toContain("message_stop");
  });

  it("for holding releases what is held", async () => {
    const clock = new ManualClock();
    const tap = new Tap().give(...anthropicPreamble());
    const pending = gateStream(tap, { ...anthropicOptions, clock, maxHoldMs: 2_000 });
    await clock.advance(2_000);
    const body = await bodyOf(pending);
    tap.give(...healthy.slice(3)).end();
    expect(await read(body)).toBe(healthy.join(""));
    expect(clock.pending).toBe(0);
  });

  it("for holding runs from the first event, which a comment is not", async () => {
    const clock = new ManualClock();
    const tap = new Tap().give(": queued\n\n");
    const pending = gateStream(tap, { ...anthropicOptions, clock, maxHoldMs: 2_000 });
    await clock.advance(10_000);
    tap.give(...anthropicPreamble());
    await clock.advance(2_000);
    expect((await pending).status).toBe("released");
  });

  it.each([
    ["is never over", { maxHoldMs: 0 }],
    ["does not run under a TTFT timeout", { maxHoldMs: 10, ttftTimeoutMs: 299_999 }],
  ])("for holding %s", async (_name, options) => {
    const clock = new ManualClock();
    const tap = new Tap().give(...anthropicPreamble());
    let settled = false;
    void gateStream(tap, { ...anthropicOptions, clock, ...options }).then(() => (settled = true));
    await clock.advance(200_000);
    expect(settled).toBe(false);
  });

  it("for the detail of a failure ends in the 502 without one", async () => {
    const clock = new ManualClock();
    const tap = new Tap().give(...responsesSplitFailure().slice(0, 2));
    const pending = rejectionOf(tap, { protocol: "openai-responses", clock });
    await clock.advance(900);
    tap.give(sseEvent({ type: "keepalive" }));
    await clock.advance(99);
    expect(tap.returned).toBe(0);
    await clock.advance(1);
    expect(await pending).toMatchObject({ status: 502, code: "response_failed" });
    expect(clock.pending).toBe(0);
  });

  it("of the TTFT that is over while the detail is awaited ends in the same 502", async () => {
    const clock = new ManualClock();
    const tap = new Tap().give(...responsesSplitFailure().slice(0, 2));
    const pending = rejectionOf(tap, { protocol: "openai-responses", clock, ttftTimeoutMs: 500 });
    await clock.advance(500);
    expect(await pending).toMatchObject({ kind: "unexplained" });
  });
});
