import { describe, expect, it, vi } from "vitest";
import { Inspector } from "../../src/gate/inspector.js";
import { defaultGateOptions, gateRules } from "../../src/gate/options.js";
import { anthropicMessages } from "../../src/gate/protocols/anthropic-messages.js";
import { openaiChat } from "../../src/gate/protocols/openai-chat.js";
import type { GateProtocol } from "../../src/gate/protocols/protocol.js";

const facts = { ttftTimeoutMs: undefined, anotherTarget: false, answersToolResult: false, requireTerminal: true };

function inspect(protocol: GateProtocol, chunks: readonly string[], readsUsage?: boolean): Inspector {
  const inspector = new Inspector(
    protocol,
    gateRules(protocol, defaultGateOptions, facts),
    defaultGateOptions.maxHeldBytes,
    undefined,
    readsUsage,
  );
  for (const chunk of chunks) inspector.push(new TextEncoder().encode(chunk));
  inspector.end();
  return inspector;
}

const event = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
const text = (content: string, usage?: object): string =>
  event({ model: "m-1", choices: [{ delta: { content }, finish_reason: null }], usage });
const stop = event({ choices: [{ delta: {}, finish_reason: "stop" }] });
const usage = event({ choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } });

describe("usage after release", () => {
  it("is read from the frame after the finish reason", () => {
    const { usage: read, responseModel } = inspect(openaiChat, [text("a"), text("b"), stop, usage, "data: [DONE]\n\n"]);
    expect(read).toEqual({ inputTokens: 3, outputTokens: 4 });
    expect(responseModel).toBe("m-1");
  });

  it("does not depend on where the network splits the stream", () => {
    const whole = text("a") + text("b") + stop + usage + "data: [DONE]\n\n";
    expect(inspect(openaiChat, whole.split("")).usage).toEqual({ inputTokens: 3, outputTokens: 4 });
    expect(inspect(openaiChat, [whole]).usage).toEqual({ inputTokens: 3, outputTokens: 4 });
  });

  it("costs no parsing of the chunks of a server that repeats it in each", () => {
    const parse = vi.spyOn(JSON, "parse");
    const running = Array.from({ length: 50 }, (_, index) =>
      text("word", { prompt_tokens: 3, completion_tokens: index }),
    );
    const last = event({
      choices: [{ delta: { content: "." }, finish_reason: "stop" }],
      usage: { prompt_tokens: 3, completion_tokens: 50 },
    });
    expect(inspect(openaiChat, [...running, last]).usage).toEqual({ inputTokens: 3, outputTokens: 50 });
    expect(parse.mock.calls.length).toBeLessThan(5);
  });

  it("is read from Anthropic's message_delta in a chunk of its own", () => {
    const { usage: read } = inspect(anthropicMessages, [
      `event: message_start\n${event({ type: "message_start", message: { model: "claude", usage: { input_tokens: 9, output_tokens: 1 } } })}`,
      `event: content_block_delta\n${event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "hi" } })}`,
      `event: message_delta\n${event({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 17 } })}`,
      `event: message_stop\n${event({ type: "message_stop" })}`,
    ]);
    expect(read).toEqual({ inputTokens: 9, outputTokens: 17 });
  });

  it("is known of a stream that is rejected", () => {
    const { usage: read } = inspect(anthropicMessages, [
      event({ type: "message_start", message: { usage: { input_tokens: 9, output_tokens: 1 } } }),
      event({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }),
    ]);
    expect(read).toEqual({ inputTokens: 9, outputTokens: 1 });
  });
});

describe("usage that nobody asks for", () => {
  it.each([["in one chunk"], ["byte by byte"]])("is not decoded after the finish reason: %s", (how) => {
    const parse = vi.spyOn(JSON, "parse");
    const whole = text("a") + text("b") + stop + usage + usage + "data: [DONE]\n\n";
    const chunks = how === "in one chunk" ? [whole] : whole.split("");
    const { usage: read, phase, recorded } = inspect(openaiChat, chunks, false);
    expect({ read, phase, recorded }).toEqual({ read: undefined, phase: "closed", recorded: undefined });
    // The event that releases and the finish reason.
    expect(parse.mock.calls.length).toBe(2);
  });

  it.each([
    ["in one chunk", (whole: string) => [whole]],
    ["byte by byte", (whole: string) => whole.split("")],
  ])("hides no error that comes among it: %s", (_, split) => {
    for (const error of ['data: {"error":{"message":"broke","code":500}}\n\n', "event: error\ndata: broke\n\n"]) {
      const { recorded } = inspect(openaiChat, split(text("a") + stop + usage + error), false);
      expect(recorded?.message).toBe("broke");
    }
  });
});
