import { describe, expect, it } from "vitest";
import { Inspector } from "../../src/gate/inspector.js";
import { defaultGateOptions, gateRules } from "../../src/gate/options.js";
import { anthropicMessages } from "../../src/gate/protocols/anthropic-messages.js";
import { anthropicHealthy, sseEvent } from "../../src/testing/index.js";
import { bytesOf } from "../fixtures/healthy.js";
import { bytewise } from "../stream-cases.js";

const facts = { ttftTimeoutMs: undefined, anotherTarget: false, answersToolResult: false, requireTerminal: true };

function inspect(): Inspector {
  return new Inspector(
    anthropicMessages,
    gateRules(anthropicMessages, defaultGateOptions, facts),
    defaultGateOptions.maxHeldBytes,
  );
}

/** CPU time, which other processes do not add to, in ms. */
function timeOf(work: () => void): number {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

/** How much more the second work costs. The best of several, in turns: what disturbs one disturbs the other. */
function ratioOf(first: () => void, second: () => void): number {
  const times = Array.from({ length: 9 }, () => [timeOf(first), timeOf(second)] as const);
  return Math.min(...times.map((pair) => pair[1])) / Math.min(...times.map((pair) => pair[0]));
}

/** A stream whose first event has this many bytes, in pieces of 100. */
function largeFirstEvent(length: number): () => void {
  const text = bytesOf(sseEvent({ type: "message_start", message: { content: [], pad: "p".repeat(length) } }));
  return () => {
    const inspector = inspect();
    for (let at = 0; at < text.length; at += 100) inspector.push(text.subarray(at, at + 100));
    inspector.push(bytesOf(anthropicHealthy().slice(3).join("")));
    expect(inspector.phase).toBe("committed");
  };
}

/** A frame of this many bytes after release, one byte at a time. */
function largeFrame(length: number): () => void {
  const chunks = bytewise(bytesOf(sseEvent({ type: "error", pad: "p".repeat(length) })));
  return () => {
    const inspector = released();
    for (const chunk of chunks) inspector.push(chunk);
    expect(inspector.recorded).toBeDefined();
  };
}

function released(): Inspector {
  const inspector = inspect();
  inspector.push(bytesOf(anthropicHealthy().slice(0, 4).join("")));
  return inspector;
}

const delta = bytesOf(anthropicHealthy()[4] ?? "");

function pushDeltas(inspector: Inspector, count: number): void {
  for (let index = 0; index < count; index += 1) inspector.push(delta);
}

describe("the work", () => {
  it("is linear in a large first event that comes in small pieces", { timeout: 60_000 }, () => {
    expect(ratioOf(largeFirstEvent(262_144), largeFirstEvent(1_048_576))).toBeLessThan(8);
  });

  it("is linear in a large frame after release that comes byte by byte", { timeout: 60_000 }, () => {
    expect(ratioOf(largeFrame(10_000), largeFrame(40_000))).toBeLessThan(8);
  });

  it("for a chunk after release does not grow with the stream", { timeout: 60_000 }, () => {
    const old = released();
    pushDeltas(old, 400_000);
    expect(
      ratioOf(
        () => pushDeltas(released(), 10_000),
        () => pushDeltas(old, 10_000),
      ),
    ).toBeLessThan(3);
  });
});
