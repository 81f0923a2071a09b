import { chatHealthy, responsesErrorFirst, responsesFailedAfterCreated, sseComment } from "@first-chunk/core/testing";
import { describe, expect, it } from "vitest";
import { sentence, wordOf } from "../src/demo/stream-words.js";
import { wrap } from "../src/demo/terminal.js";

describe("a provider's events in words", () => {
  it("joins text and counts equal events", () => {
    const events = [...chatHealthy({ text: "one two" }), sseComment("wait"), sseComment("wait")];
    expect(sentence(events.map(wordOf))).toBe(
      'role without content, text "one two", finish_reason stop, usage, [DONE], comment x2',
    );
  });

  it("gives the reason of a failure, flat or in the response", () => {
    const reason = { code: "server_error", message: "Broken." };
    expect(sentence(responsesErrorFirst(reason).map(wordOf))).toBe("error (server_error: Broken.)");
    expect(sentence(responsesFailedAfterCreated(reason).map(wordOf))).toBe(
      "response.created, response.failed (server_error: Broken.)",
    );
  });

  it("wraps at spaces and leaves a long word whole", () => {
    expect(wrap("one two three", 7)).toEqual(["one two", "three"]);
    expect(wrap("a-very-long-word b", 5)).toEqual(["a-very-long-word", "b"]);
  });
});
