import { describe, expect, it } from "vitest";

import { createStreamDecoder } from "../../src/gate/frames.js";
import { brief, bytes, decode, decodeOpen, isLinear } from "./decode-frames.js";

describe("a JSON body", () => {
  it("is given when its value is complete, the stream still open", () => {
    expect(decodeOpen('{"error":{"message":"}"}')).toEqual([]);
    expect(decodeOpen('\uFEFF\n\n {"error":"\\"}"}')).toEqual([
      { kind: "json", data: '{"error":"\\"}"}', start: 6, end: 21 },
    ]);
  });

  it("is given element by element when it is an array", () => {
    const decoder = createStreamDecoder();
    expect(brief(decoder.push(bytes('[{"a":[1]}\n,')))).toEqual(['json:{"a":[1]}']);
    expect(brief(decoder.push(bytes('\r\n{"b":')))).toEqual([]);
    expect(brief(decoder.push(bytes('2},[3],4,"{"]')))).toEqual(['json:{"b":2}', "json:[3]"]);
    expect(decoder.end()).toEqual([]);
  });

  it("may be several values in a row", () => {
    expect(brief(decodeOpen('{"a":1}{"b":2}\n{"c":3}\n[{"d":4}][{"e":5}]'))).toEqual([
      'json:{"a":1}',
      'json:{"b":2}',
      'json:{"c":3}',
      'json:{"d":4}',
      'json:{"e":5}',
    ]);
  });

  it("goes on after text that is no JSON", () => {
    expect(brief(decodeOpen('{"a":1}\n-- "quoted\n}} it\'s {"b":2}'))).toEqual(['json:{"a":1}', 'json:{"b":2}']);
  });

  it("is foreign when it ends without one whole value", () => {
    expect(decode([bytes(' {"a":[1')])).toEqual([{ kind: "foreign", start: 1, end: 8 }]);
    expect(brief(decode([bytes("[ERROR] no upstream")]))).toEqual(["foreign"]);
    expect(brief(decode([bytes("[]")]))).toEqual(["foreign"]);
  });

  it("gives no value that is cut off", () => {
    expect(brief(decode([bytes('[{"a":1},{"b":')]))).toEqual(['json:{"a":1}']);
  });

  it("counts the value under way as pending", () => {
    const decoder = createStreamDecoder();
    decoder.push(bytes('[1, 2, {"a":'));
    expect(decoder.pendingBytes).toBe(5);
    decoder.push(bytes('"漢'));
    expect(decoder.pendingBytes).toBe(9);
    decoder.push(bytes('"}, 33333'));
    expect(decoder.pendingBytes).toBe(0);
  });

  it("is read in linear time", () => {
    expect(isLinear((size) => `{"a":"${"x".repeat(size)}"}`)).toBe(true);
  });
});

describe("a body of markup", () => {
  it("is foreign at its first byte, and nothing after it counts", () => {
    const decoder = createStreamDecoder();
    expect(decoder.push(bytes("\uFEFF \n<"))).toEqual([{ kind: "foreign", start: 5, end: 6 }]);
    expect(decoder.push(bytes("html>\ndata: 1\n\n"))).toEqual([]);
    expect(decoder.pendingBytes).toBe(0);
    expect(decoder.end()).toEqual([]);
  });
});
