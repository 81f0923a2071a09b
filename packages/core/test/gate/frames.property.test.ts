import { createParser } from "eventsource-parser";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";

import type { Frame, FrameDecoder } from "../../src/gate/frame.js";
import { createNdjsonDecoder, createStreamDecoder } from "../../src/gate/frames.js";
import { protocols } from "../../src/gate/protocols/protocols.js";
import { overloadStreams } from "../fixtures/healthy-overload.js";
import { healthyStreams } from "../fixtures/healthy.js";
import { joined, readCases, streamCases } from "../stream-cases.js";
import { bytes, decode, splittings } from "./decode-frames.js";

/** Against the other parser. */
const differentialRuns = 5_000;
const runs = 1_000;

const lineEnd = fc.constantFrom("\n", "\r", "\r\n");
const text = fc.oneof(
  fc.constantFrom(
    "",
    " ",
    "  x",
    "{}",
    '{"a":"}"}',
    "[1]",
    "[DONE]",
    "\0",
    "a\0b",
    "\uFEFF",
    "é漢😀",
    "data: x",
    ":",
    "{",
    '"',
  ),
  fc.string({ unit: "binary", maxLength: 8 }).map((value) => value.replaceAll(/[\r\n]/g, "")),
);
const field = fc.constantFrom(
  "data",
  "data",
  "data",
  "event",
  "id",
  "retry",
  "error",
  "Data",
  "dat",
  "datax",
  " data",
  "x",
  "",
);
const line = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(field, fc.constantFrom(":", ": ", ":  ", ""), text).map((parts) => parts.join("")) },
  { weight: 3, arbitrary: fc.constant("") },
  { weight: 2, arbitrary: fc.constantFrom("{", "}", "[", "]", '"', '{"error":{}}', " {", '  "a": 1,', "<", "\uFEFF") },
  { weight: 1, arbitrary: text },
);
const streamText = fc
  .tuple(
    fc.constantFrom("", "", "\uFEFF", "\uFEFF\uFEFF", "\n"),
    fc.array(fc.tuple(line, lineEnd), { maxLength: 30 }),
    fc.constantFrom("", "\n\n", "\r\r", "\r\n\r\n", "data: cut"),
  )
  .map(([mark, lines, last]) => mark + lines.flat().join("") + last);
const sizes = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 12 });

function isEventStream(stream: string): boolean {
  const first = stream
    .replace(/^\uFEFF/, "")
    .trimStart()
    .at(0);
  return first !== "{" && first !== "[" && first !== "<";
}

/** Name and data of the events by eventsource-parser. */
function expectedEvents(stream: Uint8Array): [string, string][] {
  const events: [string, string][] = [];
  const parser = createParser({ onEvent: (event) => events.push([event.event ?? "", event.data]) });
  const decoded = new TextDecoder().decode(stream);
  // It waits for the byte after a CR before it ends the line. A LF there adds no line.
  parser.feed(decoded.endsWith("\r") ? `${decoded}\n` : decoded);
  return events;
}

function decodeInto(decoder: FrameDecoder): (chunk: Uint8Array) => Frame[] {
  return (chunk) => decoder.push(chunk);
}

function eventsOf(frames: readonly Frame[]): [string, string][] {
  return frames.flatMap((frame): [string, string][] =>
    frame.kind === "event" && !frame.line ? [[frame.event, frame.data]] : [],
  );
}

describe("the events of any stream", () => {
  it("are those of eventsource-parser, however the stream is split", { timeout: 120_000 }, () => {
    fc.assert(
      fc.property(streamText.filter(isEventStream), sizes, (stream, pieces) => {
        const whole = bytes(stream);
        const expected = expectedEvents(whole);
        for (const chunks of splittings(whole, pieces)) {
          const decoder = createStreamDecoder();
          expect(eventsOf(chunks.flatMap((chunk) => decoder.push(chunk)))).toEqual(expected);
        }
      }),
      { numRuns: differentialRuns },
    );
  });

  it("are those of eventsource-parser for every SSE fixture, whole, bytewise and as recorded", () => {
    const recorded = [...streamCases, ...readCases("more-streams.jsonl")]
      .filter(
        ({ protocol, http }) =>
          protocols.get(protocol)?.framing === "blank-line" && http.content_encoding === undefined,
      )
      .map(({ chunks }) => chunks);
    const fixtures = [...recorded, ...[...healthyStreams, ...overloadStreams].map(({ wire }) => [bytes(wire)])].filter(
      (chunks) => isEventStream(new TextDecoder().decode(joined(chunks))),
    );
    expect(fixtures.length).toBeGreaterThan(500);
    for (const chunks of fixtures) {
      const whole = joined(chunks);
      const expected = expectedEvents(whole);
      for (const split of [chunks, ...splittings(whole, [7])])
        expect(eventsOf(split.flatMap(decodeInto(createStreamDecoder())))).toEqual(expected);
    }
  });

  it("are those of eventsource-parser where the bytes are not UTF-8", { timeout: 120_000 }, () => {
    const broken = fc
      .uint8Array({ maxLength: 40 })
      .map((tail) => new Uint8Array([...bytes("data: a"), ...tail, ...bytes("\n\n")]));
    fc.assert(
      fc.property(broken, sizes, (stream, pieces) => {
        const expected = expectedEvents(stream);
        for (const chunks of splittings(stream, pieces)) expect(eventsOf(decode(chunks))).toEqual(expected);
      }),
      { numRuns: runs },
    );
  });
});

const jsonText = fc
  .tuple(
    fc.constantFrom("", "\uFEFF", " \r\n"),
    fc.array(
      fc.oneof(fc.constantFrom("[", "]", "{", "}", ",", "\n", '"', "\\", " 1 ", "é"), fc.json({ maxDepth: 2 })),
      { maxLength: 12 },
    ),
  )
  .map(([before, parts]) => `${before}{${parts.join("")}`);

describe("the frames of any stream", () => {
  it.each([
    ["an event stream", streamText, createStreamDecoder],
    ["a JSON body", jsonText, createStreamDecoder],
    ["NDJSON", fc.oneof(streamText, jsonText), createNdjsonDecoder],
  ] as const)("are the same however it is split: %s", { timeout: 120_000 }, (_name, stream, create) => {
    fc.assert(
      fc.property(stream, sizes, (content, pieces) => {
        const [whole, ...others] = splittings(bytes(content), pieces).map((chunks) => decode(chunks, create()));
        for (const frames of others) expect(frames).toEqual(whole);
      }),
      { numRuns: runs },
    );
  });

  it.each([
    ["an event stream", streamText, createStreamDecoder],
    ["a JSON body", jsonText, createStreamDecoder],
    ["NDJSON", fc.oneof(streamText, jsonText), createNdjsonDecoder],
  ] as const)(
    "lie inside the stream and are complete when their last byte comes: %s",
    { timeout: 120_000 },
    (_name, stream, create) => {
      fc.assert(
        fc.property(stream, (content) => {
          const whole = bytes(content);
          const decoder = create();
          for (let at = 0; at < whole.length; at++) {
            for (const frame of decoder.push(whole.subarray(at, at + 1))) {
              expect(frame.start).toBeGreaterThanOrEqual(0);
              expect(frame.start).toBeLessThan(frame.end);
              expect(frame.end).toBeLessThanOrEqual(at + 1);
            }
          }
        }),
        { numRuns: runs },
      );
    },
  );

  it("are the objects and arrays of a JSON array, with where they lie", { timeout: 120_000 }, () => {
    const elements = fc.array(fc.jsonValue({ maxDepth: 3, stringUnit: "binary" }), { maxLength: 8 });
    fc.assert(
      fc.property(elements, fc.constantFrom(undefined, 1, "\t"), sizes, (values, indent, pieces) => {
        const whole = bytes(JSON.stringify([{}, ...values], undefined, indent));
        const expected = [{}, ...values.filter((value) => typeof value === "object" && value !== null)];
        for (const chunks of splittings(whole, pieces)) {
          const decoder = createStreamDecoder();
          const frames = chunks.flatMap((chunk) => decoder.push(chunk)).filter((frame) => frame.kind === "json");
          expect(frames.map((frame) => JSON.stringify(JSON.parse(frame.data)))).toEqual(
            expected.map((value) => JSON.stringify(JSON.parse(JSON.stringify(value)))),
          );
          expect(frames.map((frame) => new TextDecoder().decode(whole.subarray(frame.start, frame.end)))).toEqual(
            frames.map((frame) => frame.data),
          );
        }
      }),
      { numRuns: runs },
    );
  });
});
