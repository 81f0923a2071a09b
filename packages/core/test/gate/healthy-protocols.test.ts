import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { gateStream, type GateStreamOptions } from "../../src/gate/gate-stream.js";
import { converseWires, invokeWires } from "../fixtures/healthy-bedrock.js";
import { geminiWires, interactionsWires } from "../fixtures/healthy-google.js";
import { ollamaWires } from "../fixtures/healthy-ollama.js";
import { bytewise, cutAt } from "../stream-cases.js";

const wires: readonly (readonly [protocol: string, Readonly<Record<string, string | Buffer>>])[] = [
  ["gemini", geminiWires],
  ["gemini-interactions", interactionsWires],
  ["bedrock-invoke", invokeWires],
  ["bedrock-converse", converseWires],
  ["ollama", ollamaWires],
];

const streams = wires.flatMap(([protocol, byName]) =>
  Object.entries(byName).map(
    ([name, wire]) =>
      [`${protocol}: ${name}`, { protocol, wire: new Uint8Array(Buffer.from(wire as string)) }] as const,
  ),
);

async function* sourceOf(chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array, void, undefined> {
  yield* chunks;
}

/** What comes out of the gate. Throws where the stream is rejected, or breaks after release. */
async function released(chunks: readonly Uint8Array[], options: GateStreamOptions): Promise<Buffer> {
  const result = await gateStream(sourceOf(chunks), options);
  if (result.status === "rejected") throw result.error;
  const parts: Uint8Array[] = [];
  for await (const part of result.body) parts.push(part);
  return Buffer.concat(parts);
}

describe("healthy streams of the other protocols", () => {
  it.each(streams)("%s is released byte for byte and finishes", async (_name, { protocol, wire }) => {
    expect((await released([wire], { protocol })).equals(wire)).toBe(true);
  });

  it.each(streams.filter(([, { wire }]) => wire.length < 20_000))(
    "%s, one byte at a time",
    async (_name, { protocol, wire }) => {
      expect((await released(bytewise(wire), { protocol })).equals(wire)).toBe(true);
    },
  );

  it("pass wherever the network splits them", { timeout: 60_000 }, async () => {
    const places = fc.array(fc.nat(20_000), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...streams), places, async ([, { protocol, wire }], cuts) => {
        expect((await released(cutAt(wire, cuts), { protocol })).equals(wire)).toBe(true);
      }),
      { numRuns: 800 },
    );
  });

  it.each([
    ["with another target to go to", { anotherTarget: true }],
    ["with empty completions failing", { emptyCompletion: "fail" }],
    ["with validation off", { inBandErrors: false }],
    ["under a TTFT timeout", { ttftTimeoutMs: 30_000 }],
  ] as const)("pass %s", async (_name, options) => {
    for (const [name, { protocol, wire }] of streams) {
      expect([name, (await released([wire], { protocol, ...options })).equals(wire)]).toEqual([name, true]);
    }
  });

  it("are cut short where their last frame is missing", async () => {
    for (const [protocol, wire] of [
      ["gemini", geminiWires["text"]?.slice(0, 170)],
      ["gemini", geminiWires["a JSON array"]?.slice(0, 300)],
      ["gemini-interactions", interactionsWires["text"]?.split("event: interaction.completed")[0]],
      ["bedrock-invoke", invokeWires["text"]?.subarray(0, -400)],
      ["bedrock-converse", converseWires["text"]?.subarray(0, 500)],
      ["ollama", ollamaWires["text"]?.split("\n").slice(0, 2).join("\n")],
    ] as const) {
      const cut = new Uint8Array(Buffer.from(wire as string));
      await expect(released([cut], { protocol })).rejects.toMatchObject({
        code: "upstream_truncated_stream",
      });
    }
  });
});
