import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isFailure } from "../../src/request-failures.js";
import {
  answersToolResult,
  encodeBody,
  isStreaming,
  readRequestBody,
  type RequestBody,
} from "../../src/routing/request-body.js";

const encoder = new TextEncoder();

function read(content: string | Uint8Array | { parsed: unknown } | undefined): RequestBody {
  const body = readRequestBody(typeof content === "string" ? encoder.encode(content) : content);
  if (isFailure(body)) throw new Error(body.message);
  return body;
}

function encoded(content: string | { parsed: unknown }, edits: readonly (readonly [string, unknown])[]): string {
  return Buffer.from(encodeBody(read(content), new Map(edits))).toString();
}

describe("reading a request body", () => {
  it.each([
    ["no body", undefined],
    ["an empty body", new Uint8Array(0)],
    ["white space", "  \n"],
    ["cut-off JSON", '{"model":'],
    ["text", "hello"],
    ["bytes that are no UTF-8", new Uint8Array([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
    ["an array", "[]"],
    ["a string", '"a"'],
    ["a number", "1"],
    ["null", "null"],
    ["two values", "{}{}"],
    ["a parsed array", { parsed: [] }],
    ["a parsed string", { parsed: "a" }],
    ["a parsed null", { parsed: null }],
    ["nothing parsed", { parsed: undefined }],
  ])("refuses %s with a 400", (_name, content) => {
    const body = readRequestBody(typeof content === "string" ? encoder.encode(content) : content);
    expect(body).toMatchObject({ kind: "bad-request", status: 400, retryable: false });
  });

  it("is no failure because of what the client wrote", () => {
    expect(isFailure(read('{"kind":"http","retryable":true,"status":400}'))).toBe(false);
    expect(isFailure(read({ parsed: { kind: "http", retryable: true } }))).toBe(false);
  });

  it("takes a byte order mark", () => {
    expect(read("\uFEFF{}").value).toEqual({});
  });
});

describe("the body for a target", () => {
  it("is the bytes as they came where nothing changes", () => {
    const bytes = encoder.encode('{ "model":"x" , "n":1e2 }');
    const body = read(bytes);
    expect(encodeBody(body, new Map([["model", "x"]]))).toBe(bytes);
    expect(encodeBody(body, new Map([["absent", undefined]]))).toBe(bytes);
    expect(encodeBody(body, new Map([["n", 100]]))).toBe(bytes);
  });

  it("differs in the changed members only", () => {
    expect(encoded('{ "model":"m" , "n":12345678901234567890 }', [["model", "x"]])).toBe(
      '{ "model":"x" , "n":12345678901234567890 }',
    );
  });

  it("has one model where the client named two: a provider's parser may take the first", () => {
    const text = '{"model":"a","tools":[{"model":"deep"}],"model":"b"}';
    expect(encoded(text, [["model", "b"]])).toBe('{"model":"b","tools":[{"model":"deep"}],"model":"b"}');
  });

  it("of a parsed value is written anew, in its order", () => {
    expect(
      encoded({ parsed: { a: 1, model: "m", b: 2 } }, [
        ["model", "x"],
        ["b", undefined],
        ["c", 3],
      ]),
    ).toBe('{"a":1,"model":"x","c":3}');
  });

  it("keeps a `__proto__` member as data", () => {
    const text = '{"__proto__":{"admin":true},"model":"m"}';
    expect(encoded(text, [["model", "x"]])).toBe(text.replace('"m"', '"x"'));
    expect(encoded({ parsed: JSON.parse(text) as unknown }, [["model", "x"]])).toBe(text.replace('"m"', '"x"'));
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });

  it("can be given names that every object has", () => {
    expect(encoded("{}", [["toString", 1]])).toBe('{"toString":1}');
    expect(encoded("{}", [["constructor", undefined]])).toBe("{}");
    expect(encoded("{}", [["__proto__", 1]])).toBe('{"__proto__":1}');
  });

  it("is the same object from bytes and from a parsed value", () => {
    const key = fc.constantFrom("model", "a", "b", "__proto__", "toString");
    const object = fc.dictionary(key, fc.jsonValue(), { noNullPrototype: true });
    const edits = fc.array(fc.tuple(key, fc.option(fc.jsonValue(), { nil: undefined })), { maxLength: 3 });
    const property = fc.property(object, edits, (value, changes) => {
      const text = JSON.stringify(value);
      const fromBytes = JSON.parse(encoded(text, changes)) as object;
      const fromValue = JSON.parse(encoded({ parsed: JSON.parse(text) as unknown }, changes)) as object;
      expect(new Map(Object.entries(fromBytes))).toEqual(new Map(Object.entries(fromValue)));
    });
    fc.assert(property, { numRuns: 500 });
  });
});

describe("whether a request streams", () => {
  it.each([
    ["openai-chat", { stream: true }, true],
    ["openai-chat", {}, false],
    ["openai-chat", { stream: "true" }, false],
    ["openai-chat", { stream: 1 }, false],
    ["anthropic-messages", { stream: true }, true],
    ["openai-responses", { stream: false }, false],
    ["ollama", {}, true],
    ["ollama", { stream: true }, true],
    ["ollama", { stream: false }, false],
  ] as const)("%s with %j: %s", (protocol, value, expected) => {
    expect(isStreaming(protocol, value)).toBe(expected);
  });
});

describe("whether the last message is a tool result", () => {
  const user = { role: "user", content: "hi" };
  it.each([
    ["openai-chat", { messages: [user, { role: "tool", content: "4" }] }, true],
    ["openai-chat", { messages: [{ role: "tool", content: "4" }, user] }, false],
    ["openai-chat", { messages: [] }, false],
    ["openai-chat", { messages: "hi" }, false],
    ["openai-chat", { messages: [null] }, false],
    ["openai-chat", {}, false],
    ["anthropic-messages", { messages: [{ role: "user", content: [{ type: "tool_result", content: "4" }] }] }, true],
    ["anthropic-messages", { messages: [{ role: "user", content: [null, "text", { type: "text" }] }] }, false],
    ["openai-responses", { input: [{ type: "function_call_output", output: "4" }] }, true],
    ["openai-responses", { input: [{ type: "message" }] }, false],
    ["openai-responses", { input: "hi" }, false],
    ["bedrock-converse", { messages: [{ role: "user", content: [{ toolResult: { toolUseId: "1" } }] }] }, true],
  ] as const)("%s with %j: %s", (protocol, value, expected) => {
    expect(answersToolResult(protocol, value as never)).toBe(expected);
  });
});
