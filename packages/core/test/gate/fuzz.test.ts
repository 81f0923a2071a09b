import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isGatewayError } from "../../src/errors.js";
import { gateStream } from "../../src/gate/gate-stream.js";
import { protocols } from "../../src/gate/protocols/protocols.js";
import { converseWires, invokeWires } from "../fixtures/healthy-bedrock.js";
import { geminiWires, interactionsWires } from "../fixtures/healthy-google.js";
import { ollamaWires } from "../fixtures/healthy-ollama.js";
import { CaseSource, cutAt, joined, streamCases, type StreamCase } from "../stream-cases.js";

const corpus: readonly Uint8Array[] = [
  ...streamCases.map((one) => joined(one.chunks)),
  ...[geminiWires, interactionsWires, invokeWires, converseWires, ollamaWires].flatMap((wires) =>
    Object.values(wires as Readonly<Record<string, string | Buffer>>).map(
      (wire) => new Uint8Array(Buffer.from(wire as string)),
    ),
  ),
].filter((bytes) => bytes.length > 0 && bytes.length < 8_000);

type Mutation =
  | { readonly type: "flip"; readonly at: number; readonly byte: number }
  | { readonly type: "cut"; readonly at: number; readonly length: number }
  | { readonly type: "repeat"; readonly at: number; readonly length: number }
  | { readonly type: "insert"; readonly at: number; readonly bytes: Uint8Array };

const at = fc.nat(8_000);
const length = fc.nat(200);
const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  fc.record({ type: fc.constant("flip" as const), at, byte: fc.nat(255) }),
  fc.record({ type: fc.constant("cut" as const), at, length }),
  fc.record({ type: fc.constant("repeat" as const), at, length }),
  fc.record({ type: fc.constant("insert" as const), at, bytes: fc.uint8Array({ maxLength: 40 }) }),
);

function mutated(bytes: Uint8Array, change: Mutation): Uint8Array {
  const from = change.at % (bytes.length + 1);
  if (change.type === "flip") {
    const copy = Uint8Array.from(bytes);
    if (from < copy.length) copy[from] = change.byte;
    return copy;
  }
  if (change.type === "insert") return joined([bytes.subarray(0, from), change.bytes, bytes.subarray(from)]);
  const to = from + change.length;
  return change.type === "cut"
    ? joined([bytes.subarray(0, from), bytes.subarray(to)])
    : joined([bytes.subarray(0, to), bytes.subarray(from, to), bytes.subarray(to)]);
}

const mutatedStream = fc
  .tuple(fc.constantFrom(...corpus), fc.constantFrom(...corpus), fc.boolean(), fc.array(mutation, { maxLength: 6 }))
  .map(([first, second, spliced, changes]) => changes.reduce(mutated, spliced ? joined([first, second]) : first));

/** Text of the sort that streams are made of. */
const fragment = fc.constantFrom(
  ...'data: |event: error|: c|\n|\r|\r\n|\n\n|{|}|[|]|"|\\|,|null|[DONE]|error|"error":|{"error":"x"}|{"type":"error"}|<|\ufeff| |\0|0'.split(
    "|",
  ),
);
const bytes = fc.oneof(
  fc.uint8Array({ maxLength: 300 }),
  fc.array(fragment, { maxLength: 60 }).map((parts) => new Uint8Array(Buffer.from(parts.join("")))),
  fc.uint8Array({ maxLength: 100 }).map((tail) => Uint8Array.from([0, 0, 0, ...tail])),
);

/** How a stream goes through the gate, as one string. Fails on anything that is not exactly one outcome. */
async function outcomeOf(protocol: string, chunks: readonly Uint8Array[], end: StreamCase["end"]): Promise<string> {
  const result = await gateStream(new CaseSource(chunks, end), { protocol });
  if (result.status === "rejected") {
    const { status, code } = result.error;
    expect(Number.isInteger(status) && status >= 400 && status <= 599).toBe(true);
    return `rejected ${status} ${code}`;
  }
  const parts: Uint8Array[] = [];
  let broken = "";
  try {
    for await (const part of result.body) parts.push(part);
  } catch (error) {
    if (!isGatewayError(error)) throw error;
    broken = ` ${error.code}`;
  }
  expect(Buffer.concat(parts).equals(joined(chunks))).toBe(true);
  return `released${broken}`;
}

const names = [...protocols.keys()];
const ends = fc.constantFrom<StreamCase["end"]>("eof", "reset");
const places = fc.array(fc.nat(10_000), { maxLength: 8 });

describe("whatever a provider sends", () => {
  it.each([
    ["arbitrary bytes", bytes],
    ["changed streams", mutatedStream],
  ])("%s have one outcome, wherever they are split", { timeout: 120_000 }, async (_name, input) => {
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...names), input, places, ends, async (protocol, stream, cuts, end) => {
        const whole = await outcomeOf(protocol, [stream], end);
        expect(await outcomeOf(protocol, cutAt(stream, cuts), end)).toBe(whole);
      }),
      { numRuns: 2_000 },
    );
  });

  it.each(names)("%s: an endless first event is held no further than the limit", async (protocol) => {
    const openings = ["data: {", "{", "[", ": ", "error: {", "", "\n", "\0\0"];
    for (const opening of openings) {
      const block = new Uint8Array(16_384).fill(0x20);
      let taken = 0;
      async function* endless(): AsyncGenerator<Uint8Array> {
        if (opening !== "") yield new Uint8Array(Buffer.from(opening));
        while (taken < 10_000_000) {
          taken += block.length;
          yield block;
        }
      }
      const result = await gateStream(endless(), { protocol, maxHeldBytes: 65_536 });
      expect(taken).toBeLessThan(65_536 + 3 * block.length);
      if (result.status === "released") await result.body[Symbol.asyncIterator]().return?.();
    }
  });
});
