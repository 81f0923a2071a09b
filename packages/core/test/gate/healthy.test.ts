import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { bytesOf, healthyStreams, releasedText } from "../fixtures/healthy.js";
import { bytewise, cutAt } from "../stream-cases.js";

const named = healthyStreams.map((one) => [`${one.protocol} ${one.id}`, one] as const);
const small = healthyStreams.filter((one) => one.wire.length <= 20_000);

describe("healthy streams", () => {
  it.each(named)("%s is released byte for byte and finishes", async (_name, { protocol, wire }) => {
    expect(await releasedText([bytesOf(wire)], { protocol })).toBe(wire);
  });

  it.each(named)("%s arrives one byte at a time", async (_name, { protocol, wire }) => {
    expect(await releasedText(bytewise(bytesOf(wire)), { protocol })).toBe(wire);
  });

  it("pass wherever the network splits them", { timeout: 60_000 }, async () => {
    const splits = fc.array(fc.nat(20_000), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...small), splits, async ({ protocol, wire }, places) => {
        expect(await releasedText(cutAt(bytesOf(wire), places), { protocol })).toBe(wire);
      }),
      { numRuns: 600 },
    );
  });

  it.each([
    ["with another target to go to", { anotherTarget: true }],
    ["under a TTFT timeout", { ttftTimeoutMs: 30_000 }],
    ["with validation off", { inBandErrors: false, responsesInBandErrors: false }],
    ["with empty completions failing", { emptyCompletion: "fail" }],
  ] as const)("pass %s", async (_name, options) => {
    const changed: string[] = [];
    for (const { id, protocol, wire } of small) {
      for (const chunks of [[bytesOf(wire)], bytewise(bytesOf(wire))]) {
        const text = await releasedText(chunks, { protocol, ...options }).catch(String);
        if (text !== wire) changed.push(`${protocol} ${id}: ${text}`);
      }
    }
    expect(changed).toEqual([]);
  });
});
