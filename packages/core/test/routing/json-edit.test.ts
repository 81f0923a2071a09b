import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { editJsonObject } from "../../src/routing/json-edit.js";

function edit(text: string, edits: Record<string, unknown>): string {
  return editJsonObject(text, new Map(Object.entries(edits)));
}

describe("editing a JSON object in its own text", () => {
  it.each([
    ['{"model":"a","n":1}', { model: "b" }, '{"model":"b","n":1}'],
    ['{ "model" :\t"a" ,\n "n" : 1 }', { model: "b" }, '{ "model" :\t"b" ,\n "n" : 1 }'],
    ['{"a":1,"b":2,"c":3}', { a: undefined }, '{"b":2,"c":3}'],
    ['{"a":1,"b":2,"c":3}', { b: undefined }, '{"a":1,"c":3}'],
    ['{"a":1,"b":2,"c":3}', { c: undefined }, '{"a":1,"b":2}'],
    ['{"a":1,"b":2,"c":3}', { a: undefined, b: undefined }, '{"c":3}'],
    ['{"a":1}', { a: undefined }, "{}"],
    ['{"a":1}', { a: undefined, b: 2 }, '{"b":2}'],
    ["{}", { a: 1 }, '{"a":1}'],
    ["{ }", { a: 1 }, '{"a":1 }'],
    ['{"a":1}', { b: { c: [null] } }, '{"a":1,"b":{"c":[null]}}'],
    ['{"a":1}', { b: undefined }, '{"a":1}'],
    ["  {\n}\n", { a: 1 }, '  {"a":1\n}\n'],
  ])("%j with %j", (text, edits, expected) => {
    expect(edit(text, edits)).toBe(expected);
  });

  it("keeps numbers that JavaScript cannot hold", () => {
    const text = '{"seed":12345678901234567890,"model":"a","t":1.0,"e":1E400,"z":-0}';
    expect(edit(text, { model: "b" })).toBe(text.replace('"a"', '"b"'));
  });

  it("keeps duplicate keys in depth, and edits all of those at the top", () => {
    const text = '{"model":"a","x":{"model":"a","model":"c"},"model":"a"}';
    expect(edit(text, { model: "b" })).toBe('{"model":"b","x":{"model":"a","model":"c"},"model":"b"}');
    expect(edit(text, { model: undefined })).toBe('{"x":{"model":"a","model":"c"}}');
  });

  it("knows a key by its meaning, not by its spelling", () => {
    const text = String.raw`{"mod\u0065l":"a","\"model\"":1,"model\\":2}`;
    expect(edit(text, { model: "b" })).toBe(text.replace('"a"', '"b"'));
  });

  it("is not led astray by brackets, quotes and commas in strings", () => {
    const text = String.raw`{"a":"}],{\\","b":["\"]",{"c":"\\\""}],"model":"\\"}`;
    expect(JSON.parse(edit(text, { model: "b" }))).toEqual({ a: "}],{\\", b: ['"]', { c: '\\"' }], model: "b" });
  });

  it("treats `__proto__` as any other key", () => {
    expect(edit('{"__proto__":{"x":1},"a":2}', { a: 3 })).toBe('{"__proto__":{"x":1},"a":3}');
    expect(editJsonObject('{"__proto__":1,"a":2}', new Map([["__proto__", undefined]]))).toBe('{"a":2}');
    expect(editJsonObject('{"a":2}', new Map([["__proto__", 1]]))).toBe('{"a":2,"__proto__":1}');
  });

  it("is linear: a deep and a long body take no time", () => {
    const deep = `{"a":${"[".repeat(100_000)}${"]".repeat(100_000)},"s":"${String.raw`\\`.repeat(200_000)}","model":"a"}`;
    expect(edit(deep, { model: "b" }).endsWith('"model":"b"}')).toBe(true);
  });
});

interface WrittenMember {
  readonly key: string;
  /** The key as JSON text, with some characters escaped. */
  readonly keyText: string;
  readonly valueText: string;
}

const space = fc.stringMatching(/^[ \n\r\t]{0,3}$/);
const keys = fc.oneof(
  fc.constantFrom("model", "stream", "__proto__", "constructor", "a", "", "ключ", '"', "\\"),
  fc.string({ maxLength: 5 }),
);
const numberText = fc.constantFrom("0", "-0", "1.50", "12345678901234567890", "1e999", "1E-3");
const nested = fc.constantFrom(
  '{"model":1,"model":2}',
  '[ 1 ,{"a":"]}"} ]',
  String.raw`"\"\\\u007d,"`,
  '{ "__proto__" : {} }',
);
const valueText = fc.oneof(
  fc.jsonValue().map((value) => JSON.stringify(value)),
  numberText,
  nested,
);
const member: fc.Arbitrary<WrittenMember> = fc
  .record({ key: keys, escaped: fc.boolean(), valueText })
  .map(({ key, escaped, valueText: text }) => ({
    key,
    keyText: escaped
      ? `"${[...Array(key.length).keys()].map((at) => `\\u${key.charCodeAt(at).toString(16).padStart(4, "0")}`).join("")}"`
      : JSON.stringify(key),
    valueText: text,
  }));
const edits = fc
  .array(fc.tuple(keys, fc.option(fc.jsonValue(), { nil: undefined })), { maxLength: 4 })
  .map((pairs) => new Map(pairs));

describe("any JSON object and any edits", () => {
  it("give the object with the edits, and every member that stays has its own text", () => {
    const property = fc.property(
      fc.array(member, { maxLength: 8 }),
      edits,
      fc.array(space, { minLength: 40, maxLength: 40 }),
      (members, changes, spaces) => {
        let at = 0;
        const gap = (): string => spaces[(at += 1) % spaces.length];
        const texts = members.map(({ keyText, valueText: value }) => `${keyText}${gap()}:${gap()}${value}`);
        const written = texts.map((memberText) => `${gap()}${memberText}${gap()}`).join(",");
        const text = `${gap()}{${written === "" ? gap() : written}}${gap()}`;
        const edited = editJsonObject(text, changes);

        // Not an object literal: `__proto__` is a key like any other.
        const expected = new Map(Object.entries(JSON.parse(text) as object));
        for (const [key, value] of changes) {
          if (value === undefined) expected.delete(key);
          else expected.set(key, JSON.parse(JSON.stringify(value)));
        }
        const parsed = JSON.parse(edited) as object;
        expect(new Map(Object.entries(parsed))).toEqual(expected);
        let from = 0;
        for (const [index, { key }] of members.entries()) {
          if (changes.has(key)) continue;
          const found = edited.indexOf(texts[index], from);
          expect(found).toBeGreaterThanOrEqual(0);
          from = found + texts[index].length;
        }
      },
    );
    fc.assert(property, { numRuns: 2000 });
  });

  it("without edits give the text itself", () => {
    fc.assert(
      fc.property(fc.dictionary(keys, fc.jsonValue()), (object) => {
        const text = JSON.stringify(object);
        expect(editJsonObject(text, new Map())).toBe(text);
      }),
    );
  });
});
