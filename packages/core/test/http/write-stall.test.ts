import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { WriteStallWatch } from "../../src/http/write-stall.js";
import { ManualClock } from "../../src/testing/manual-clock.js";

function watching(timeoutMs = 1000) {
  const clock = new ManualClock();
  const handle = { writeQueueSize: 0 };
  const res = { writableLength: 100, socket: { _handle: handle } as object | null };
  const stalls: number[] = [];
  const watch = new WriteStallWatch(res as unknown as ServerResponse, timeoutMs, clock, () => stalls.push(clock.now()));
  return { clock, handle, res, stalls, watch };
}

describe("a write stall", () => {
  it("is found when the client takes nothing for the timeout", () => {
    const { clock, stalls, watch } = watching();
    watch.arm();
    clock.advanceSync(999);
    expect(stalls).toEqual([]);
    clock.advanceSync(1);
    expect(stalls).toEqual([2000]);
    expect(clock.pending).toBe(0);
  });

  it("is not found while the client takes a little of a large write", () => {
    const { clock, handle, stalls, watch } = watching();
    handle.writeQueueSize = 1_000_000;
    watch.arm();
    for (let second = 0; second < 10; second += 1) {
      clock.advanceSync(900);
      handle.writeQueueSize -= 1;
    }
    expect(stalls).toEqual([]);
    clock.advanceSync(1250);
    expect(stalls).toHaveLength(1);
  });

  it("is not found while nothing waits for the client", () => {
    const { clock, res, stalls, watch } = watching();
    res.writableLength = 0;
    watch.arm();
    clock.advanceSync(5000);
    expect(stalls).toEqual([]);
  });

  it("is not found while another response is before this one", () => {
    const { clock, res, stalls, watch } = watching();
    res.socket = null;
    watch.arm();
    clock.advanceSync(5000);
    expect(stalls).toEqual([]);
  });

  it("is found on time when more is written to a client that takes nothing", () => {
    const { clock, res, stalls, watch } = watching();
    watch.arm();
    clock.advanceSync(100);
    res.writableLength += 50;
    watch.arm();
    clock.advanceSync(900);
    expect(stalls).toEqual([2000]);
  });

  it("is not looked for after disarm", () => {
    const { clock, stalls, watch } = watching();
    watch.arm();
    watch.disarm();
    expect(clock.pending).toBe(0);
    clock.advanceSync(5000);
    expect(stalls).toEqual([]);
  });
});
