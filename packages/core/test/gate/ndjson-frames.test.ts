import { describe, expect, it } from "vitest";

import type { Frame } from "../../src/gate/frame.js";
import { createNdjsonDecoder } from "../../src/gate/frames.js";
import { brief, bytes, decode, decodeOpen } from "./decode-frames.js";

const open = (text: string): Frame[] => decodeOpen(text, createNdjsonDecoder());
const ended = (text: string): Frame[] => decode([bytes(text)], createNdjsonDecoder());

describe("an NDJSON body", () => {
  it("gives an event a line, when the line ends", () => {
    expect(open('{"a":1}\n{"b":2}')).toEqual([{ kind: "event", event: "", data: '{"a":1}', start: 0, end: 8 }]);
  });

  it("skips blank lines, and white space around a value", () => {
    expect(brief(open('\uFEFF\n \r\n {"a":1}\t\r\n\n \t\n{"b":2}\n'))).toEqual(['event::{"a":1}', 'event::{"b":2}']);
  });

  it("gives the unterminated last line at the end", () => {
    expect(brief(ended('{"a":1}\n{"b":'))).toEqual(['event::{"a":1}', 'event::{"b":']);
    expect(ended("\n  ")).toEqual([]);
  });

  it("gives a line that is no JSON as it is", () => {
    expect(brief(open("upstream error\n"))).toEqual(["event::upstream error"]);
  });

  it("takes a first value over several lines for one event, as printed errors are", () => {
    const printed = '{\n  "error": {\r\n    "code": 429\n  }\n}\n';
    expect(open(printed)).toEqual([
      { kind: "event", event: "", data: '{\n"error": {\n"code": 429\n}\n}', start: 0, end: printed.length },
    ]);
    expect(brief(open(`${printed}{"a":1}\n`))).toHaveLength(2);
    expect(brief(ended(printed.trimEnd()))).toHaveLength(1);
  });

  it("takes a body that is one value without a line end for JSON, not for a line", () => {
    expect(ended('{"a":1}')).toEqual([{ kind: "json", data: '{"a":1}', start: 0, end: 7 }]);
    expect(ended('{"a":').map((frame) => frame.kind)).toEqual(["event"]);
    expect(ended('{"a":1}\n{"b":2}').map((frame) => frame.kind)).toEqual(["event", "event"]);
  });

  it("ends a first value that was cut short where a line opens another", () => {
    expect(brief(open('{"a":\n{"b":2}\n{"c":\n{"d":4}\n'))).toEqual([
      'event::{"a":\n',
      'event::{"b":2}',
      'event::{"c":',
      'event::{"d":4}',
    ]);
  });

  it("is foreign when it starts with markup", () => {
    expect(ended("\n <html>\n{}\n")).toEqual([{ kind: "foreign", start: 2, end: 3 }]);
  });

  it("puts together a line that comes in pieces, and counts it as pending", () => {
    const decoder = createNdjsonDecoder();
    const stream = bytes(' {"a":"漢"}\n');
    for (const byte of stream.subarray(0, -1)) expect(decoder.push(new Uint8Array([byte]))).toEqual([]);
    expect(decoder.pendingBytes).toBe(stream.length - 1);
    expect(brief(decoder.push(bytes("\n")))).toEqual(['event::{"a":"漢"}']);
    expect(decoder.pendingBytes).toBe(0);
  });
});
