import { Anthropic } from "@anthropic-ai/sdk";
import { OpenAI } from "openai";
import { afterEach, describe, expect, it } from "vitest";
import {
  anthropicErrorAfterPreamble,
  anthropicHealthy,
  anthropicToolCall,
  chatErrorFirst,
  chatHealthy,
  responsesErrorThenFailed,
  responsesHealthy,
  sse,
  startScriptedProvider,
} from "../../src/testing/index.js";
import type { ScriptedProvider } from "../../src/testing/index.js";

let provider: ScriptedProvider | undefined;
afterEach(() => provider?.close());

async function serving(events: string[]): Promise<string> {
  provider = await startScriptedProvider(sse(events));
  return provider.url;
}

async function anthropic(events: string[]): Promise<Anthropic> {
  return new Anthropic({ apiKey: "test", baseURL: await serving(events), maxRetries: 0 });
}

async function openai(events: string[]): Promise<OpenAI> {
  return new OpenAI({ apiKey: "test", baseURL: `${await serving(events)}/v1`, maxRetries: 0 });
}

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const event of stream) void event;
}

const ask = {
  model: "m",
  max_tokens: 10,
  messages: [{ role: "user" as const, content: "hi" }],
};

/** The official clients decide whether a stream is what the vendor sends. */
describe("ready-made streams", () => {
  it("Anthropic's client reads the text of a healthy stream", async () => {
    const message = await (await anthropic(anthropicHealthy({ text: "one two" }))).messages.stream(ask).finalMessage();
    expect(message.content).toEqual([expect.objectContaining({ type: "text", text: "one two" })]);
    expect(message.stop_reason).toBe("end_turn");
  });

  it("Anthropic's client reads a tool call", async () => {
    const message = await (await anthropic(anthropicToolCall())).messages.stream(ask).finalMessage();
    expect(message.content).toEqual([expect.objectContaining({ type: "tool_use", input: { city: "Berlin" } })]);
  });

  it("Anthropic's client throws on the error event", async () => {
    const stream = (await anthropic(anthropicErrorAfterPreamble())).messages.stream(ask);
    await expect(stream.finalMessage()).rejects.toThrow("Overloaded");
  });

  it("OpenAI's client reads the text of a healthy Responses stream", async () => {
    const stream = (await openai(responsesHealthy({ text: "one two" }))).responses.stream({ model: "m", input: "hi" });
    expect((await stream.finalResponse()).output_text).toBe("one two");
  });

  it("Responses events are numbered from 0", () => {
    const numbers = responsesErrorThenFailed().map((event) => Number(/"sequence_number":(\d+)/.exec(event)?.[1]));
    expect(numbers).toEqual([0, 1, 2, 3]);
  });

  it("OpenAI's client throws on the error event of a Responses stream", async () => {
    const stream = await (
      await openai(responsesErrorThenFailed())
    ).responses.create({ model: "m", input: "hi", stream: true });
    await expect(drain(stream)).rejects.toThrow("Rate limit");
  });

  it("OpenAI's client reads the text of a healthy Chat Completions stream", async () => {
    const stream = (await openai(chatHealthy({ text: "one two" }))).chat.completions.stream(ask);
    expect(await stream.finalContent()).toBe("one two");
  });

  it("OpenAI's client throws on an error in a Chat Completions stream", async () => {
    const stream = (await openai(chatErrorFirst())).chat.completions.stream(ask);
    await expect(stream.finalContent()).rejects.toThrow("server had an error");
  });
});
