import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import { bytesOf, healthyStreams, sourceOf } from "../fixtures/healthy.js";

type ByteSearch = typeof import("../../src/gate/byte-search.js");

/** The module as it is where there is a `Buffer`, and where there is none. */
async function load(runtime: string): Promise<ByteSearch> {
  vi.resetModules();
  if (runtime === "without Buffer") vi.stubGlobal("Buffer", undefined);
  return import("../../src/gate/byte-search.js");
}

const runtimes = ["with Buffer", "without Buffer"];

afterEach(() => {
  vi.unstubAllGlobals();
  vi.resetModules();
});

describe.each(runtimes)("byte search %s", (runtime) => {
  it.each<[string, string, boolean]>([
    ["at the start", "[DONE] x", true],
    ["at the end", "x [DONE]", true],
    ["after a false start", "[[DO[DONE]", true],
    ["cut short", "x [DONE", false],
    ["nowhere", "event: ping", false],
    ["in nothing", "", false],
    ["among multibyte text", "漢字error漢字", true],
  ])("finds a marker %s", async (_where, text, found) => {
    const { MarkerSearch } = await load(runtime);
    expect(new MarkerSearch(["[DONE]", "error"]).first(bytesOf(text)) !== -1).toBe(found);
  });

  it("looks only at the chunk, not at the memory it is a view on", async () => {
    const { MarkerSearch } = await load(runtime);
    expect(new MarkerSearch(["error"]).first(bytesOf("error").subarray(0, 4))).toBe(-1);
  });

  it("finds nothing without markers", async () => {
    const { MarkerSearch } = await load(runtime);
    expect(new MarkerSearch([]).first(bytesOf("x"))).toBe(-1);
    expect(new MarkerSearch([]).overlap).toBe(0);
  });

  it("needs an overlap of one byte less than the longest marker", async () => {
    const { MarkerSearch } = await load(runtime);
    expect(new MarkerSearch(["ab", "abcde"]).overlap).toBe(4);
  });

  it("agrees with a search in text", async () => {
    const { MarkerSearch } = await load(runtime);
    const letters = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 40 });
    fc.assert(
      fc.property(
        letters,
        letters.map((text) => text.slice(0, 4)).filter((text) => text !== ""),
        (text, marker) => {
          expect(new MarkerSearch([marker]).first(bytesOf(text))).toBe(text.indexOf(marker));
        },
      ),
    );
  });

  it.each<[string, number | undefined]>([
    ['{"sequence_number":7}', 7],
    ['{"sequence_number" : 12,"x":1}', 12],
    ['{"sequence_number":1}{"sequence_number":20}', 20],
    ['{"sequence_number":0}', 0],
    ['{"text":"\\"sequence_number\\":9"}', undefined],
    ['{"sequence_number":{"type":"integer"}}', undefined],
    ['{"sequence_number":', undefined],
    ['"sequence_number"', undefined],
    ["", undefined],
  ])("reads the last sequence number of %s", async (text, number) => {
    const { lastSequenceNumber } = await load(runtime);
    expect(lastSequenceNumber(bytesOf(text))).toBe(number);
  });
});

describe("the gate without Buffer", () => {
  it("passes every healthy stream", async () => {
    vi.resetModules();
    vi.stubGlobal("Buffer", undefined);
    const { gateStream } = await import("../../src/gate/gate-stream.js");
    const lost: string[] = [];
    for (const { id, protocol, wire } of healthyStreams) {
      const bytes = bytesOf(wire);
      const size = bytes.length > 20_000 ? bytes.length : 7;
      const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
        bytes.subarray(index * size, (index + 1) * size),
      );
      const result = await gateStream(sourceOf(pieces), { protocol });
      if (result.status === "rejected") lost.push(id);
      else for await (const part of result.body) expect(part).toBeInstanceOf(Uint8Array);
    }
    expect(lost).toEqual([]);
  });
});
