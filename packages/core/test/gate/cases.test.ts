import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { gateStream } from "../../src/gate/gate-stream.js";
import { protocols } from "../../src/gate/protocols/protocols.js";
import { ManualClock } from "../../src/testing/index.js";
import { bytewise, CaseSource, cutAt, joined, readCases, streamCases, type StreamCase } from "../stream-cases.js";

/** Compressed bytes are the HTTP layer's business: the gate alone takes decoded ones. */
const cases = streamCases.filter((one) => one.http.content_encoding === undefined && protocols.has(one.protocol));

const ttftTimeoutMs = 30_000;

interface Outcome {
  readonly action: "release" | "fail" | "wait";
  readonly status?: number;
  readonly code?: string;
  readonly retryable?: boolean;
  readonly message?: string;
  readonly released?: string;
}

async function outcomeOf(one: StreamCase, chunks: readonly Uint8Array[]): Promise<Outcome> {
  const clock = new ManualClock();
  const source = new CaseSource(chunks, one.end);
  const timeout = one.end === "stall" ? { ttftTimeoutMs } : {};
  const pending = gateStream(source, {
    protocol: one.protocol,
    contentType: one.http.content_type,
    clock,
    ...timeout,
    ...one.options,
  });
  const settled = pending.then(() => "settled" as const);
  if (one.end === "stall") {
    await source.idle;
    await clock.advance(ttftTimeoutMs);
  }
  const first = await Promise.race([
    settled,
    source.idle.then(() => new Promise<"idle">((resolve) => setImmediate(resolve, "idle"))),
  ]);
  if (first === "idle") return { action: "wait" };
  const result = await pending;
  expect(clock.pending).toBe(0);
  if (result.status === "rejected") {
    const { status, code, retryable, message } = result.error;
    expect(source.returned || one.end === "eof" || one.end === "reset").toBe(true);
    return { action: "fail", status, code, retryable, message };
  }
  const wanted = joined(chunks).length;
  const released: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of result.body) {
      released.push(chunk);
      length += chunk.length;
      if (length >= wanted) break;
    }
  } catch {
    // A stream that is cut short after release breaks; its bytes have gone through all the same.
  }
  return { action: "release", released: Buffer.concat(released).toString("latin1") };
}

function expected(one: StreamCase): Outcome {
  if (one.expected.action === "release")
    return { action: "release", released: Buffer.from(joined(one.chunks)).toString("latin1") };
  return one.expected;
}

describe("recorded stream openings", () => {
  it.each(cases.map((one) => [one.id, one] as const))("%s", async (_id, one) => {
    expect(await outcomeOf(one, one.chunks)).toMatchObject(expected(one));
  });

  const splittable = cases.filter((one) => one.chunks.length > 0);

  it.each(splittable.map((one) => [one.id, one] as const))(
    "%s, in one piece and one byte at a time",
    async (_id, one) => {
      const whole = joined(one.chunks);
      expect(await outcomeOf(one, [whole])).toMatchObject(expected(one));
      expect(await outcomeOf(one, bytewise(whole))).toMatchObject(expected(one));
    },
  );

  it("has the same verdict and bytes wherever the network splits a stream", async () => {
    const small = splittable.filter((one) => joined(one.chunks).length <= 20_000);
    const splits = fc.array(fc.nat(20_000), { maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...small), splits, async (one, places) => {
        expect(await outcomeOf(one, cutAt(joined(one.chunks), places))).toMatchObject(expected(one));
      }),
      { numRuns: 600 },
    );
  });
});

/** Derived from the contract and the catalogue of formats: a sentence, a table row or a combination each. */
describe("stream openings that the documents imply", () => {
  const implied = readCases("more-streams.jsonl");

  it.each([...protocols.keys()])("%s, as given, in one piece and one byte at a time", async (protocol) => {
    const ours = implied.filter((one) => one.protocol === protocol);
    expect(ours.length).toBeGreaterThan(0);
    for (const one of ours) {
      const whole = joined(one.chunks);
      const ways =
        whole.length === 0 ? { given: one.chunks } : { given: one.chunks, whole: [whole], bytewise: bytewise(whole) };
      for (const [way, chunks] of Object.entries(ways)) {
        expect(await outcomeOf(one, chunks), `${one.id}, ${way}: ${one.note}`).toMatchObject(expected(one));
      }
    }
  });
});
