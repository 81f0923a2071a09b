import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isAffordableJson } from "../../src/routing/json-shape.js";
import { readRequestBody } from "../../src/routing/request-body.js";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const pad = "x".repeat(70_000);

describe("a request body", () => {
  it.each([
    ["deep arrays", `${"[".repeat(100_000)}${"]".repeat(100_000)}`],
    ["deep objects", `${'{"a":'.repeat(50_000)}1${"}".repeat(50_000)}`],
    ["many empty arrays", `{"a":[${"[],".repeat(300_000)}[]]}`],
    ["deep arrays after a string that ends in a backslash", `{"a":"\\\\","b":${"[".repeat(100_000)}`],
  ])("of %s is refused before it is parsed", (_name, text) => {
    expect(isAffordableJson(bytes(text))).toBe(false);
    expect(readRequestBody(bytes(text))).toMatchObject({ status: 400 });
  });

  it.each([
    ["brackets in strings", JSON.stringify({ a: "[{".repeat(100_000), b: '\\"[' })],
    ["an unterminated string of brackets", `{"a":"${"[".repeat(100_000)}`],
    [
      "a long conversation",
      JSON.stringify({
        messages: Array.from({ length: 10_000 }, () => ({ role: "user", content: [{ type: "text", text: "hi" }] })),
      }),
    ],
    ["a small body, whatever it holds", "[".repeat(65_536)],
  ])("of %s is parsed", (_name, text) => {
    expect(isAffordableJson(bytes(text))).toBe(true);
  });

  it("is parsed wherever JSON.stringify made it", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(isAffordableJson(bytes(JSON.stringify([pad, text, JSON.parse(text)])))).toBe(true);
      }),
      { numRuns: 200 },
    );
  });
});
