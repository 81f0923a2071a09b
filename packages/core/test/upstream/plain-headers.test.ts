import type { IncomingHttpHeaders } from "node:http";
import { expect, it } from "vitest";
import { plainHeaders } from "../../src/upstream/plain-headers.js";

/** As undici builds it: a field named `__proto__` is a property of its own. */
const given = (): IncomingHttpHeaders =>
  JSON.parse('{"a":"1","__proto__":["x"],"constructor":"c"}') as IncomingHttpHeaders;

it("have no field that could be taken for their prototype", () => {
  const plain = plainHeaders(given());
  expect(Object.keys(plain)).toEqual(["a", "constructor"]);
  expect(Object.getPrototypeOf(plain)).toBe(null);
});

it("are a copy that leaves what was given as it is", () => {
  const headers = Object.freeze(given());
  expect(plainHeaders(headers)["a"]).toBe("1");
});
