import { describe, expect, it } from "vitest";
import { checkAdapterOptions, locate } from "../../src/http/adapter-options.js";
import type { AdapterOptions } from "../../src/http/adapter-options.js";

describe("the options", () => {
  it.each([
    [{ prefx: "/llm" }, "options.prefx: unknown; known are identify and prefix"],
    [{ identify: "me" }, "options.identify: must be a function"],
    [{ prefix: "llm" }, 'options.prefix: must be a path such as "/llm"'],
    [{ prefix: "/" }, 'options.prefix: must be a path such as "/llm"'],
    [{ prefix: "/a?b" }, 'options.prefix: must be a path such as "/llm"'],
  ])("%j are an error that says what is wrong", (options, message) => {
    expect(() => checkAdapterOptions(options as AdapterOptions<unknown>)).toThrow(message);
  });

  it("may give the prefix with a slash at its end", () => {
    expect(checkAdapterOptions({ prefix: "/a/b/" }).prefix).toBe("/a/b");
  });
});

describe("the prefix", () => {
  it.each([
    ["/llm/v1/messages?beta=true", { url: "/v1/messages?beta=true", mounted: true }],
    ["/llm/", { url: "/", mounted: true }],
    ["/llm", undefined],
    ["/llm?x", undefined],
    ["/llmx/v1/messages", undefined],
    ["/v1/messages", undefined],
    ["/LLM/v1/messages", undefined],
    ["//llm/v1/messages", undefined],
    ["http://host/llm/v1/messages", undefined],
  ])("of %s", (url, place) => {
    expect(locate(url, "/llm", false)).toEqual(place);
  });

  it("is not needed", () => {
    expect(locate("/messages", undefined, true)).toEqual({ url: "/messages", mounted: true });
  });
});
