import { describe, expect, it } from "vitest";
import { isFailure } from "../../src/request-failures.js";
import { readControlHeaders } from "../../src/routing/control-headers.js";
import { readMetadata } from "../../src/routing/metadata.js";

const read = (header: string | readonly string[] | undefined, own?: Record<string, string>): unknown => {
  const result = readMetadata({ "x-tfy-metadata": header }, "x-tfy-", own && { metadata: own });
  return result instanceof Map ? Object.fromEntries(result) : result;
};

describe("metadata", () => {
  it("comes from the header and from the host, which wins", () => {
    expect(read('{"tier":"tin","team":"red"}', { tier: "gold" })).toEqual({ tier: "gold", team: "red" });
    expect(read(undefined, { tier: "gold" })).toEqual({ tier: "gold" });
    expect(read(undefined)).toEqual({});
  });

  it("takes any key, also one that objects inherit", () => {
    const result = readMetadata({ "x-tfy-metadata": '{"__proto__":"a","constructor":"b"}' }, "x-tfy-", undefined);
    expect(result).toEqual(
      new Map([
        ["__proto__", "a"],
        ["constructor", "b"],
      ]),
    );
  });

  it("takes values of 128 characters", () => {
    expect(read(JSON.stringify({ a: "x".repeat(128) }))).toEqual({ a: "x".repeat(128) });
  });

  it.each([
    ["no JSON", "tier=gold"],
    ["nothing", ""],
    ["an array", '["gold"]'],
    ["null", "null"],
    ["a number in it", '{"tier":1}'],
    ["an object in it", '{"tier":{}}'],
    ["a value of 129 characters", JSON.stringify({ a: "x".repeat(129) })],
    ["65 keys", JSON.stringify(Object.fromEntries(Array.from({ length: 65 }, (_, index) => [`k${index}`, ""])))],
  ])("that is %s is a 400 that names the header", (_name, header) => {
    const failure = read(header);
    expect(failure).toMatchObject({ status: 400, param: "x-tfy-metadata" });
    expect((failure as { message: string }).message).toContain("`x-tfy-metadata` must be a JSON object");
  });
});

describe("x-tfy-provider-name", () => {
  it("names the provider apart from the model", () => {
    expect(readControlHeaders({ "x-tfy-provider-name": "openai" }, "x-tfy-", true)).toMatchObject({
      providerName: "openai",
    });
  });

  it.each(["", "a/b", "open ai", "*", "x".repeat(201)])("%j is a 400 that names the header", (value) => {
    const failure = readControlHeaders({ "x-tfy-provider-name": value }, "x-tfy-", true);
    expect(isFailure(failure) && failure.message).toContain("`x-tfy-provider-name` must be");
  });
});
