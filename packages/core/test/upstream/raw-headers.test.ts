import { expect, it } from "vitest";
import { readRawHeaders } from "../../src/upstream/raw-headers.js";

function read(...fields: readonly string[]): object {
  return readRawHeaders(fields.map((field) => Buffer.from(field, "latin1")));
}

it("names are told in lower case, values byte by byte", () => {
  expect(read("Content-TYPE", "text/event-stream", "X-Request-Id", "\u00e9")).toEqual({
    "content-type": "text/event-stream",
    "x-request-id": "\u00e9",
  });
});

it("a field that came more than once has a list of values", () => {
  expect(read("Connection", "close", "connection", "x-a", "CONNECTION", "x-b")).toEqual({
    connection: ["close", "x-a", "x-b"],
  });
});

it("what the gateway neither reads nor passes on is left out, whatever its name", () => {
  const headers = read("set-cookie", "a=1", "__proto__", "x", "constructor", "y", "x-ratelimit-limit", "5");
  expect(Object.keys(headers)).toEqual(["x-ratelimit-limit"]);
  expect(Object.getPrototypeOf(headers)).toBe(Object.prototype);
});

it("what says how and when to try again is of use", () => {
  const fields = ["retry-after", "1", "retry-after-ms", "2", "x-should-retry", "false", "content-encoding", "gzip"];
  expect(Object.entries(read(...fields)).flat()).toEqual(fields);
});

it("names that share a place are told apart", () => {
  const names = Array.from({ length: 2_000 }, (_, index) => `x-ratelimit-${index}`);
  for (const name of [...names, ...names]) expect(read(name, "1")).toEqual({ [name]: "1" });
});

it("a name is told by every one of its bytes", () => {
  for (const name of ["x-ratelimit-abcdefg", "x-ratelimit-bacdefg", "x-ratelimit-abcdefgg"])
    expect(read(name, "1")).toEqual({ [name]: "1" });
});
