import { describe, expect, it } from "vitest";

import { createStreamDecoder } from "../../src/gate/frames.js";
import { brief, bytes, decode, decodeOpen, isLinear } from "./decode-frames.js";

describe("an SSE body", () => {
  it("gives an event with its name and data at the blank line", () => {
    expect(decodeOpen("event: ping\ndata: {}\n")).toEqual([]);
    expect(decodeOpen("event: ping\ndata: {}\n\n")).toEqual([
      { kind: "event", event: "ping", data: "{}", start: 0, end: 22 },
    ]);
  });

  it.each([
    ["LF", "data: a\n\ndata: b\n\n"],
    ["CRLF", "data: a\r\n\r\ndata: b\r\n\r\n"],
    ["CR", "data: a\r\rdata: b\r\r"],
    ["a mix", "data: a\r\n\ndata: b\n\r"],
  ])("ends lines by %s", (_name, text) => {
    expect(brief(decodeOpen(text))).toEqual(["event::a", "event::b"]);
  });

  it("gives an event at a CR at once, and takes a LF in the next chunk as part of it", () => {
    const decoder = createStreamDecoder();
    expect(brief(decoder.push(bytes("data: a\r\r")))).toEqual(["event::a"]);
    expect(decoder.push(bytes("\n"))).toEqual([]);
    expect(brief(decoder.push(bytes("data: b\r")))).toEqual([]);
    expect(brief(decoder.push(bytes("\ndata: c\n\n")))).toEqual(["event::b\nc"]);
  });

  it("says where each event lies, from its first field line", () => {
    const text = ": hello\nid: 1\ndata: a\n\n\nevent: x\ndata: ü\n\n";
    const [comment, first, second] = decodeOpen(text);
    expect(comment).toEqual({ kind: "comment", start: 0, end: 8 });
    expect(first).toMatchObject({ start: 8, end: 23 });
    expect(second).toMatchObject({ start: 24, end: 43 });
    expect(bytes(text).length).toBe(43);
  });

  it("ends an event behind the CR of a CRLF, wherever the chunk ends", () => {
    expect(decodeOpen("data: a\r\n\r\n")).toMatchObject([{ start: 0, end: 10 }]);
  });

  it("joins data lines by LF, and removes one space after the colon", () => {
    expect(brief(decodeOpen("data:a\ndata:  b\ndata\ndata:\ndata: \n\n"))).toEqual(["event::a\n b\n\n\n"]);
  });

  it("gives an event for a data line without a value, as the SSE rules do, and none without a data line", () => {
    expect(brief(decodeOpen("data:\n\ndata\n\n"))).toEqual(["event::", "event::"]);
    expect(decodeOpen("event: x\nid: 1\n\n\n\n")).toEqual([]);
  });

  it("takes the last event name, and forgets it at the blank line", () => {
    const text = "event: a\nevent: b\ndata: 1\n\nevent: c\n\ndata: 2\n\nevent: d\nevent\ndata: 3\n\n";
    expect(brief(decodeOpen(text))).toEqual(["event:b:1", "event::2", "event::3"]);
  });

  it("minds the case of field names, and white space before them", () => {
    expect(decodeOpen("x\nDATA: 1\n data: 2\ndatax: 3\ndat: 4\nError: 5\n\n")).toEqual([]);
  });

  it("drops one byte order mark, and takes a second as text", () => {
    expect(brief(decodeOpen("\uFEFFdata: a\n\n"))).toEqual(["event::a"]);
    expect(decodeOpen("\uFEFF\uFEFFdata: a\n\n")).toEqual([]);
    expect(brief(decodeOpen("data: \uFEFFa\n\n"))).toEqual(["event::\uFEFFa"]);
  });

  it("takes a byte order mark that breaks off as text", () => {
    const broken = new Uint8Array([0xef, 0xbb, ...bytes("data: a\n\n")]);
    expect(brief(decode([broken]))).toEqual(["foreign"]);
    expect(brief(decode([broken.subarray(0, 2)]))).toEqual(["foreign"]);
  });

  it("puts characters together that are cut by a chunk", () => {
    const text = bytes("data: 漢😀\n\n");
    expect(brief(decode([...text].map((byte) => new Uint8Array([byte]))))).toEqual(["event::漢😀"]);
  });

  it("gives nothing for white space before the body", () => {
    expect(decode([bytes(" \r\n\t\n  ")])).toEqual([]);
    expect(brief(decodeOpen("\n \r\n\ndata: a\n\n"))).toEqual(["event::a"]);
  });

  it("takes spaces before the first field as part of its name", () => {
    expect(brief(decode([bytes("\n  "), bytes("data: a\ndata: b\n\n")]))).toEqual(["event::b"]);
  });

  it("does not keep the chunk", () => {
    const decoder = createStreamDecoder();
    const chunk = bytes("data: ab");
    decoder.push(chunk);
    chunk.fill(0x7a);
    expect(brief(decoder.push(bytes("c\n\n")))).toEqual(["event::abc"]);
  });
});

describe("the lines that a strict SSE parser ignores", () => {
  it("gives the value of a field named error when its line ends", () => {
    expect(decodeOpen('data: 1\nerror: {"code":400}\n')).toEqual([
      { kind: "stray", data: '{"code":400}', field: true, start: 8, end: 28 },
    ]);
    expect(brief(decodeOpen("data: 1\nerror: x\n\n"))).toEqual(["stray:x", "event::1"]);
  });

  it("gives bare JSON on one line", () => {
    expect(decodeOpen(': hi\n  {"error":"}{"}\n')).toEqual([
      { kind: "comment", start: 0, end: 5 },
      { kind: "stray", data: '{"error":"}{"}', start: 7, end: 21 },
    ]);
  });

  it("collects bare JSON over lines until it is balanced, blank lines and all", () => {
    const text = 'data: 1\n\n{\n  "a": "\\"}",\r\n\r\n  "b": [\n  ]\n}\ndata: 2\n\n';
    expect(brief(decodeOpen(text))).toEqual(["event::1", 'stray:{\n  "a": "\\"}",\n  "b": [\n  ]\n}', "event::2"]);
  });

  it("gives a frame for each of several values", () => {
    expect(brief(decodeOpen(': x\n{"a":1}\n[2]\n{"b":\n3}, {"c":4} and [5]\n'))).toEqual([
      "comment",
      'stray:{"a":1}',
      "stray:[2]",
      'stray:{"b":\n3}',
      'stray:{"c":4}',
    ]);
  });

  it.each(["data: 1", "event: 1", "id: 1", "retry: 1", ": 1", "error: 1"])(
    "drops a collection at the line %s, and reads it as SSE",
    (line) => {
      const frames = brief(decodeOpen(`: x\n{"a":"\n${line}\ndata: 2\n\n}\n{}\n`));
      expect(frames).not.toContain('stray:{"a":"');
      expect(frames.filter((frame) => frame.startsWith("event"))).toHaveLength(1);
      expect(frames.at(-1)).toBe("stray:{}");
      expect(frames).toHaveLength(line.startsWith(":") || line.startsWith("error") ? 4 : 3);
    },
  );

  it("ends an event at a blank line inside bare JSON", () => {
    expect(brief(decodeOpen("data: 1\n{\n\n}\n"))).toEqual(["event::1", "stray:{\n}"]);
  });

  it("takes a body of text for foreign when it ends, and not before", () => {
    const text = "\nupstream connect error or reset: before headers";
    expect(decodeOpen(text)).toEqual([]);
    expect(decode([bytes(text)])).toEqual([{ kind: "foreign", start: 1, end: 48 }]);
    expect(brief(decode([bytes(": x\n\nnot found\n")]))).toEqual(["comment", "foreign"]);
  });

  it("does not take a body for foreign that has an event, an error or JSON, or fields alone", () => {
    for (const text of ["data: 1\n\n", "error: 1\n", "data: 1", "id\n{}\n", "id\n{"]) {
      expect(brief(decode([bytes(`text\n${text}`)]))).not.toContain("foreign");
    }
    expect(decode([bytes("event: a\nid: 1\nretry: 2\n\n")])).toEqual([]);
  });
});

describe("an event with several data lines", () => {
  it("is given line by line, and then joined, when the first line is JSON", () => {
    const text = 'event: e\ndata: {"a":1}\ndata: {"b":2}\ndata: [DONE]\n\ndata: {"c":3}\n\n';
    expect(decodeOpen(text)).toEqual([
      { kind: "event", event: "e", data: '{"a":1}', line: true, start: 9, end: 23 },
      { kind: "event", event: "e", data: '{"b":2}', line: true, start: 23, end: 37 },
      { kind: "event", event: "e", data: "[DONE]", line: true, start: 37, end: 50 },
      { kind: "event", event: "e", data: '{"a":1}\n{"b":2}\n[DONE]', start: 0, end: 51 },
      { kind: "event", event: "", data: '{"c":3}', start: 51, end: 66 },
    ]);
  });

  it("names each single line by the name that stood before it", () => {
    const frames = decodeOpen('event: a\ndata: {"n":1}\nevent: error\ndata: {"n":2}\n');
    expect(brief(frames)).toEqual(['line:a:{"n":1}', 'line:error:{"n":2}']);
  });

  it("is judged anew for each event", () => {
    const frames = brief(decodeOpen("data: {}\ndata: 1\n\ndata: 2\ndata: 3\n\n"));
    expect(frames).toEqual(["line::{}", "line::1", "event::{}\n1", "event::2\n3"]);
  });

  it("gives the first two lines when the second ends", () => {
    expect(decodeOpen('data: {"a":1}\n')).toEqual([]);
    expect(brief(decodeOpen('data: {"a":1}\ndata: 2\n'))).toEqual(['line::{"a":1}', "line::2"]);
  });

  it.each(["{", "1", '"a"', "{a}", "null", "", "[1]]"])("is only joined when the first is %s", (first) => {
    expect(brief(decodeOpen(`data: ${first}\ndata: {"b":2}\ndata: 3\n\n`))).toEqual([`event::${first}\n{"b":2}\n3`]);
  });
});

describe("the end of an SSE body", () => {
  it.each([
    ["data: a", ["event::a"]],
    ["data: a\n", ["event::a"]],
    ["event: x\ndata: a\ndata: b", ["event:x:a\nb"]],
    ["error: x", ["stray:x"]],
    [": x", ["comment"]],
    [": x\n{}", ["comment", "stray:{}"]],
    [': x\n{"a":1', ["comment", 'stray:{"a":1\n']],
    ['data: {"a":1}\ndata: x', ['line::{"a":1}', "line::x", 'event::{"a":1}\nx']],
    ["event: x", []],
    ["event: x\nda", ["foreign"]],
    ["", []],
  ])("reads what is unterminated: %j", (text, expected) => {
    expect(brief(decode([bytes(text)]))).toEqual(expected);
  });

  it("gives nothing for what comes after it", () => {
    const decoder = createStreamDecoder();
    decoder.push(bytes("data: a"));
    decoder.end();
    expect(decoder.push(bytes("\n\ndata: b\n\n"))).toEqual([]);
    expect(decoder.end()).toEqual([]);
    expect(decoder.pendingBytes).toBe(0);
  });
});

describe("pendingBytes of an SSE body", () => {
  it.each([
    ["a line without end", "data: x", "y"],
    ["white space before the body", " ", "\t"],
    ["data lines", "data: x\n", "data: y\n"],
    ["empty data lines", "data\n", "data\n"],
    ["data lines given one by one", "data: {}\n", "data\n"],
    ["bare JSON", ": x\n{\n", "1\n"],
    ["bare JSON in which nothing but white space comes", ": x\n{\n", " \n"],
  ])("grows with %s", (_name, begin, more) => {
    const decoder = createStreamDecoder();
    const seen: number[] = [];
    decoder.push(bytes(begin));
    for (let round = 0; round < 50; round++) {
      seen.push(decoder.pendingBytes);
      decoder.push(bytes(more));
    }
    expect(seen[0]).toBeGreaterThan(0);
    for (let index = 1; index < seen.length; index++) {
      expect(seen[index]).toBeGreaterThan(seen[index - 1] ?? 0);
    }
  });

  it("counts the last event name alone", () => {
    const decoder = createStreamDecoder();
    decoder.push(bytes("event: abc\n".repeat(1000)));
    expect(decoder.pendingBytes).toBe(3);
  });

  it.each([
    "data: a\n\n",
    "event: a\n\n",
    ": a\n",
    "error: a\n",
    ": x\n{\n}\n",
    "x\n",
    "id: 1\n",
    "\n \n",
    "data: a\ndata: b\n\n",
  ])("is zero when nothing is under way: %j", (text) => {
    const decoder = createStreamDecoder();
    for (const byte of bytes(text)) decoder.push(new Uint8Array([byte]));
    expect(decoder.pendingBytes).toBe(0);
  });
});

describe("the cost of an SSE body", () => {
  it.each([
    ["one long line", (size: number) => `data: ${"x".repeat(size)}\n\n`],
    ["one long event", (size: number) => `${"data: x\n".repeat(size / 8)}\n`],
    ["many JSON lines in one event", (size: number) => `${"data: {}\n".repeat(size / 9)}\n`],
    ["bare JSON over many lines", (size: number) => `: x\n{\n${'"a": 1,\n'.repeat(size / 8)}}\n`],
    ["a long field that is not known", (size: number) => `${"x".repeat(size)}\n`],
  ])("is linear for %s", (_name, text) => {
    expect(isLinear(text)).toBe(true);
  });
});
