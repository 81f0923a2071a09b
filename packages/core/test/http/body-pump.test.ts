import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { BodyPump } from "../../src/http/body-pump.js";
import { ManualClock } from "../../src/testing/manual-clock.js";
import { ScriptedBody } from "./scripted-gateway.js";

function pumping(idle?: boolean) {
  const clock = new ManualClock();
  const body = new ScriptedBody();
  const log: string[] = [];
  const outlet = {
    takes: true,
    written: [] as Uint8Array[],
    ...(idle === undefined ? {} : { idle }),
    write(bytes: Uint8Array): boolean {
      log.push(`write ${bytes.byteLength}`);
      outlet.written.push(bytes);
      return outlet.takes;
    },
    finish: () => void log.push("finish"),
    fail: () => void log.push("fail"),
  };
  const res = { writableLength: 1, socket: {}, destroy: () => log.push("destroy") } as unknown as ServerResponse;
  const pump = new BodyPump({ body, outlet, res, writeStallTimeoutMs: 1000, clock });
  pump.start();
  return { clock, body, log, outlet, pump };
}
const tick = (): Promise<void> => new Promise((resolve) => process.nextTick(resolve));

describe("the pump", () => {
  it("writes what comes at once, and then the end", () => {
    const { body, log } = pumping();
    body.push("a").push("bc").finish();
    expect(log).toEqual(["write 1", "write 2", "finish"]);
  });

  it("writes the last bytes before it fails", () => {
    const { body, log } = pumping();
    body.push("abc").fail();
    expect(log).toEqual(["write 3", "fail"]);
  });

  it("does not copy a chunk", () => {
    const { outlet, pump } = pumping();
    const chunk = Buffer.from("alone");
    pump.write(chunk);
    expect(outlet.written[0]).toBe(chunk);
  });

  it("stops the body when the outlet is full, and resumes it when it drains", () => {
    const { body, log, outlet, pump } = pumping();
    outlet.takes = false;
    body.push("a").push("b");
    expect([body.full, log]).toEqual([true, ["write 1"]]);
    outlet.takes = true;
    pump.drained();
    pump.drained();
    body.push("c");
    expect(log).toEqual(["write 1", "write 1", "write 1"]);
    expect(body.resumes).toBe(1);
  });

  it("cancels and destroys when the client takes nothing", async () => {
    const { body, clock, log, outlet } = pumping();
    outlet.takes = false;
    body.push("a");
    await tick();
    clock.advanceSync(1000);
    expect(body.cancelled).toBe("write-stall");
    expect(log).toEqual(["write 1", "destroy"]);
  });

  it("destroys when the client does not take what was written before the end", async () => {
    const { body, clock, log } = pumping();
    body.push("a").fail();
    await tick();
    clock.advanceSync(1000);
    expect(log).toEqual(["write 1", "fail", "destroy"]);
    expect(body.cancelled).toBeUndefined();
  });

  it("cancels the body once the connection is gone, and writes nothing more", async () => {
    const { body, clock, log, pump } = pumping();
    body.push("a");
    pump.close();
    body.push("b").finish();
    await tick();
    expect(body.cancelled).toBe("client-abort");
    expect(log).toEqual(["write 1"]);
    expect(clock.pending).toBe(0);
  });

  it("starts no timer for a client that has taken everything within the tick", async () => {
    const { body, clock } = pumping(true);
    body.push("a").finish();
    await tick();
    expect(clock.pending).toBe(0);
  });

  it("starts no timer once the connection is gone", async () => {
    const { body, clock, pump } = pumping();
    body.finish();
    pump.close();
    await tick();
    expect(clock.pending).toBe(0);
  });

  it("does not cancel a body that has ended, and leaves no timer", async () => {
    const { body, clock, pump } = pumping();
    body.finish();
    await tick();
    expect(clock.pending).toBe(1);
    pump.close();
    expect(body.cancelled).toBeUndefined();
    expect(clock.pending).toBe(0);
  });
});
