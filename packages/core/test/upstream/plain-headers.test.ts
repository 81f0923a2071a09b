import type { IncomingHttpHeaders } from "node:http";
import { describe, expect, it } from "vitest";
import { plainHeaders, plainHeadersInPlace } from "../../src/upstream/plain-headers.js";

/** As undici builds it: a field named `__proto__` is a property of its own. */
const given = (): IncomingHttpHeaders =>
  JSON.parse('{"a":"1","__proto__":["x"],"constructor":"c"}') as IncomingHttpHeaders;

describe.each([
  ["copied", plainHeaders],
  ["taken over", plainHeadersInPlace],
])("headers that are %s", (_, convert) => {
  it("have no field that could be taken for their prototype", () => {
    const plain = convert(given());
    expect(Object.keys(plain)).toEqual(["a", "constructor"]);
    expect([null, Object.prototype]).toContain(Object.getPrototypeOf(plain));
  });
});

it("a copy leaves what was given as it is", () => {
  const headers = Object.freeze(given());
  expect(plainHeaders(headers)["a"]).toBe("1");
});
