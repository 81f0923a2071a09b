import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MarkerSearch } from "../../src/gate/byte-search.js";
import type { Frame } from "../../src/gate/frame.js";
import { createEventDecoder, createNdjsonDecoder } from "../../src/gate/frames.js";
import type { GateOutput } from "../../src/gate/gate.js";
import { Inspector } from "../../src/gate/inspector.js";
import { defaultGateOptions, gateRules } from "../../src/gate/options.js";
import { anthropicMessages } from "../../src/gate/protocols/anthropic-messages.js";
import { openaiChat } from "../../src/gate/protocols/openai-chat.js";
import { openaiResponses } from "../../src/gate/protocols/openai-responses.js";
import type { GateProtocol } from "../../src/gate/protocols/protocol.js";
import { Watch, type WatchOptions } from "../../src/gate/watch.js";
import {
  anthropicError,
  anthropicHealthy,
  chatHealthy,
  responsesHealthy,
  sseComment,
  sseEvent,
} from "../../src/testing/index.js";
import { bytesOf } from "../fixtures/healthy.js";
import { bytewise, cutAt } from "../stream-cases.js";

function watch(fields: Partial<WatchOptions> = {}, begun = ""): Watch {
  const options: WatchOptions = {
    framing: "blank-line",
    search: new MarkerSearch(["[DONE]", "error"]),
    createDecoder: createEventDecoder,
    numbered: false,
    maxBytes: 1_000,
    ...fields,
  };
  return new Watch(options, begun === "" ? [] : [bytesOf(begun)]);
}

function dataOf(frames: readonly Frame[]): string[] {
  return frames.flatMap((frame) => (frame.kind === "event" ? [frame.data] : []));
}
function push(watching: Watch, text: string): string[] {
  return dataOf(watching.push(bytesOf(text)));
}
/** Data of what is decoded, for a text in these pieces. */
function seen(watching: Watch, pieces: Iterable<Uint8Array>): string[] {
  return Array.from(pieces, (piece) => dataOf(watching.push(piece))).flat();
}

describe("the watch", () => {
  it("decodes nothing that holds no marker", () => {
    const watching = watch();
    expect(watching.push(bytesOf('data: {"a":1}\n\ndata: cut'))).toEqual([]);
    expect(watching.end()).toEqual([]);
  });

  it("decodes a frame with a marker once it is complete", () => {
    const watching = watch();
    expect(push(watching, "data: [DONE]\n")).toEqual([]);
    expect(push(watching, "\n")).toEqual(["[DONE]"]);
    expect(push(watching, "data: x\n\n")).toEqual([]);
  });

  it.each(["\n", "\r\n", "\r"])("finds a marker wherever two chunks meet, with %j at line ends", (eol) => {
    const text = `data: a${eol}${eol}data: [DONE]${eol}${eol}`;
    for (let cut = 1; cut < text.length; cut += 1) {
      const watching = watch();
      const found = [...push(watching, text.slice(0, cut)), ...push(watching, text.slice(cut))];
      expect(found, `cut at ${cut}`).toContain("[DONE]");
      expect(watching.end()).toEqual([]);
    }
    expect(seen(watch(), bytewise(bytesOf(text)))).toEqual(["[DONE]"]);
  });

  it.each([
    ["\n\r", "data: error\n\r"],
    ["\r\n\r", "data: error\r\n\r"],
    ["\r\n\n", "data: error\r\n\n"],
    ["\n\r\n", "data: error\n\r\n"],
    ["\r\r\n", "data: error\r\r\n"],
  ])("takes %j for the end of a frame", (_eol, text) => {
    expect(push(watch(), text)).toEqual(["error"]);
    expect(seen(watch(), bytewise(bytesOf(text)))).toEqual(["error"]);
  });

  it("does not take one line end for the end of a frame, split or not", () => {
    for (const pieces of [["data: error\r\n"], ["data: error\r", "\n"], ["data: error", "\r", "\n"]]) {
      const watching = watch();
      expect(pieces.flatMap((piece) => push(watching, piece))).toEqual([]);
      expect(dataOf(watching.end())).toEqual(["error"]);
    }
  });

  it("finds a marker that is spread over three chunks, with empty ones between", () => {
    const watching = watch();
    const pieces = ["data: [D", "", "", "", "", "", "", "ON", "", "E]\n\n"];
    expect(pieces.flatMap((piece) => push(watching, piece))).toEqual(["[DONE]"]);
  });

  it("keeps apart what was complete and what has begun in one chunk", () => {
    const watching = watch();
    expect(push(watching, "data: x\n\ndata: err")).toEqual([]);
    expect(push(watching, "or\n\ndata: [DO")).toEqual(["error"]);
    expect(push(watching, "NE]\n\n")).toEqual(["[DONE]"]);
  });

  it("goes on with the frame that had begun before release", () => {
    expect(push(watch({}, "data: [DON"), "E]\n\n")).toEqual(["[DONE]"]);
    expect(push(watch({}, "data: [DONE]\n"), "\n")).toEqual(["[DONE]"]);
    expect(dataOf(watch({}, "data: [DONE]").end())).toEqual(["[DONE]"]);
  });

  it("reads an unterminated last frame at the end", () => {
    const watching = watch();
    push(watching, "data: error");
    expect(dataOf(watching.end())).toEqual(["error"]);
  });

  it("reads lines where lines are the framing", () => {
    const watching = watch({ framing: "line", createDecoder: createNdjsonDecoder });
    expect(push(watching, '{"error"')).toEqual([]);
    expect(push(watching, ':1}\n{"a":1}\n{"b"')).toEqual(['{"error":1}', '{"a":1}']);
    expect(push(watching, ":2}\n")).toEqual([]);
  });

  it("decodes from the frame with the first marker on", () => {
    const watching = watch();
    expect(push(watching, "data: a\n\ndata: b\n\ndata: error\n\ndata: c\n\ndata: d")).toEqual(["error", "c"]);
  });

  it("decodes everything once it is told to", () => {
    const watching = watch();
    watching.everything = true;
    expect(push(watching, "data: x\n\ndata: y")).toEqual(["x"]);
    expect(dataOf(watching.end())).toEqual(["y"]);
  });

  it("is blind once a frame is larger than its limit, and sees again after it", () => {
    const watching = watch({ maxBytes: 20 });
    expect(push(watching, `data: error ${"x".repeat(30)}`)).toEqual([]);
    expect(watching.blind).toBe(true);
    expect(push(watching, "\n\n")).toEqual([]);
    expect(push(watching, "data: [DONE]\n\n")).toEqual(["[DONE]"]);
  });

  it("is not blind to a large frame that comes in one chunk", () => {
    const watching = watch({ maxBytes: 20 });
    expect(push(watching, `data: error ${"x".repeat(30)}\n\n`).length).toBe(1);
    expect(watching.blind).toBe(false);
  });

  it("keeps no view on what it is given", () => {
    const watching = watch();
    const read = bytesOf("data: [DONE]\n");
    watching.push(read);
    read.fill(0);
    expect(push(watching, "\n")).toEqual(["[DONE]"]);
  });
});

describe("the sequence number", () => {
  it("is that of the last complete frame", () => {
    const watching = watch({ numbered: true });
    push(watching, 'data: {"sequence_number":4}\n\ndata: {"sequence_number":5}\n\ndata: {"sequence_number":6');
    expect(watching.sequenceNumber).toBe(5);
    push(watching, "}\n\n");
    expect(watching.sequenceNumber).toBe(6);
  });

  it("is found where it came in an earlier chunk of its frame", () => {
    const watching = watch({ numbered: true });
    for (const piece of ['data: {"sequence_', 'number":31,"delta":"', 'long"', "}\n\n"]) push(watching, piece);
    expect(watching.sequenceNumber).toBe(31);
  });

  it("stays where a frame has none, and is not read from text", () => {
    const watching = watch({ numbered: true });
    push(watching, 'data: {"sequence_number":3}\n\n: comment\n\n');
    push(watching, 'data: {"delta":"\\"sequence_number\\":99"}\n\n');
    expect(watching.sequenceNumber).toBe(3);
  });

  it("is not kept for protocols without one", () => {
    const watching = watch();
    push(watching, 'data: {"sequence_number":3}\n\n');
    expect(watching.sequenceNumber).toBeUndefined();
  });
});

describe("the number an added event must go on from", () => {
  it("is the highest, also where a frame holds the key again further in", () => {
    const inspector = inspect(openaiResponses);
    const tools = [{ parameters: { properties: { sequence_number: { type: "integer" }, error: {} } } }];
    inspector.push(bytesOf(responsesHealthy().slice(0, 6).join("")));
    inspector.push(bytesOf(sseEvent({ type: "response.output_text.delta", delta: "x", sequence_number: 6 })));
    inspector.push(bytesOf(sseEvent({ type: "response.in_progress", sequence_number: 7, response: { tools } })));
    expect(inspector.sequenceNumber).toBe(7);
  });
});

const facts = { ttftTimeoutMs: undefined, anotherTarget: false, answersToolResult: false, requireTerminal: true };

function inspect(protocol: GateProtocol): Inspector {
  return new Inspector(protocol, gateRules(protocol, defaultGateOptions, facts), defaultGateOptions.maxHeldBytes);
}

describe("a large frame after release", () => {
  it("is recognised: 300 KiB of response.completed in pieces of 1000", () => {
    const inspector = inspect(openaiResponses);
    const item = { type: "message", content: [{ type: "output_text", text: "t".repeat(300_000) }] };
    const last = bytesOf(
      sseEvent({ type: "response.completed", response: { status: "completed", output: [item] }, sequence_number: 9 }),
    );
    inspector.push(bytesOf(responsesHealthy().slice(0, 6).join("")));
    for (let at = 0; at < last.length; at += 1_000) inspector.push(last.subarray(at, at + 1_000));
    expect(inspector.sequenceNumber).toBe(9);
    expect(inspector.end()).toEqual({ type: "finish", complete: true });
  });

  it("that is larger than the limit makes the end uncertain", () => {
    const inspector = inspect(openaiResponses);
    inspector.push(bytesOf(responsesHealthy().slice(0, 6).join("")));
    for (let count = 0; count < 70; count += 1) inspector.push(new Uint8Array(65_536).fill(120));
    expect(inspector.end()).toEqual({ type: "finish", complete: false });
  });
});

describe("text that mentions markers", () => {
  it.each<[GateProtocol, string]>([
    [
      anthropicMessages,
      sseEvent({
        type: "content_block_delta",
        index: 0,
        delta: { type: "text_delta", text: 'message_stop {"type":"message_stop"} error' },
      }),
    ],
    [
      openaiChat,
      sseEvent({
        choices: [{ index: 0, delta: { content: '[DONE] "finish_reason":"stop" error' }, finish_reason: null }],
      }),
    ],
    [
      openaiResponses,
      sseEvent({
        type: "response.output_text.delta",
        delta: "response.completed response.failed error",
        sequence_number: 7,
      }),
    ],
  ])("does not complete or fail a stream", (protocol, mention) => {
    const inspector = inspect(protocol);
    inspector.push(bytesOf(mention));
    inspector.push(bytesOf(mention));
    expect(inspector.recorded).toBeUndefined();
    expect(inspector.end()).toMatchObject({ type: "fail", failure: { kind: "truncated-stream" } });
  });
});

interface Fate {
  readonly end: GateOutput;
  readonly recorded: unknown;
  readonly sequenceNumber: number | undefined;
}

function fateOf(protocol: GateProtocol, pieces: Iterable<Uint8Array>): Fate {
  const inspector = inspect(protocol);
  for (const piece of pieces) inspector.push(piece);
  const { sequenceNumber } = inspector;
  return { end: inspector.end(), recorded: inspector.recorded, sequenceNumber };
}

/** An event and the number it may carry. */
function numbered(type: string, fields: object): (sequence: number) => string {
  return (sequence) => sseEvent({ type, sequence_number: sequence, ...fields }, type);
}
function constant(text: string): () => string {
  return () => text;
}

const anywhere = [
  sseComment("error [DONE] message_stop"),
  "id: 4\nretry: 5\n\n",
  sseEvent({ note: "error" }),
  "event: error\n\n",
  "error\n",
  "data\n\n",
].map(constant);
const pools: readonly (readonly [GateProtocol, string, readonly ((sequence: number) => string)[]])[] = [
  [
    anthropicMessages,
    anthropicHealthy().slice(0, 4).join(""),
    [
      ...anthropicHealthy().slice(3).map(constant),
      constant(anthropicError()),
      constant('data: {\ndata: "type":"message_stop"}\n\n'),
    ],
  ],
  [
    openaiChat,
    chatHealthy().slice(0, 2).join(""),
    [
      ...chatHealthy().slice(1).map(constant),
      constant(sseEvent({ error: { message: "no", code: 503 } })),
      constant(sseEvent({ message: "no", type: "too_many_requests_error", param: "q", code: "too_many_requests" })),
      constant('error: {"code":400}\n\n'),
      constant('{\n  "error": {"code": 503}\n}\n'),
      constant('data: {"choices":[]}\ndata: [DONE]\n\n'),
    ],
  ],
  [
    openaiResponses,
    responsesHealthy().slice(0, 6).join(""),
    [
      numbered("response.output_text.delta", { delta: 'say "sequence_number":77 and error' }),
      numbered("response.completed", { response: { status: "completed", output: [] } }),
      numbered("response.failed", { response: { error: { code: "server_error", message: "no" } } }),
      numbered("error", { code: "server_error", message: "no" }),
      numbered("response.in_progress", { response: { metadata: { a: "error" } } }),
    ],
  ],
];

const stream = fc.constantFrom(...pools).chain(([protocol, opening, pool]) =>
  fc
    .record({
      events: fc.array(fc.constantFrom(...pool, ...anywhere), { maxLength: 8 }),
      eol: fc.constantFrom("\n", "\n", "\r\n", "\r"),
      cut: fc.nat(3),
    })
    .map(({ events, eol, cut }) => {
      const text = opening + events.map((event, index) => event(index + 6)).join("");
      return { protocol, bytes: bytesOf(text.slice(0, text.length - cut).replaceAll("\n", eol)) };
    }),
);

describe("any stream after release", () => {
  it("has the fate that a full decode of its bytes finds, however it is split", { timeout: 60_000 }, () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(20_000), { maxLength: 12 }), ({ protocol, bytes }, places) => {
        const expected = fateOf({ ...protocol, framing: "decoded" }, [bytes]);
        expect(fateOf(protocol, [bytes])).toEqual(expected);
        expect(fateOf(protocol, cutAt(bytes, places))).toEqual(expected);
        expect(fateOf(protocol, bytewise(bytes))).toEqual(expected);
      }),
      { numRuns: 600 },
    );
  });
});
