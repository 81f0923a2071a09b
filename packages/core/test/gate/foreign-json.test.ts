import { describe, expect, it } from "vitest";
import { gateStream } from "../../src/gate/gate-stream.js";
import { CaseSource } from "../stream-cases.js";

async function codeOf(protocol: string, body: string): Promise<string | undefined> {
  const result = await gateStream(new CaseSource([Buffer.from(body)], "eof"), { protocol });
  return result.status === "rejected" ? `${result.error.status} ${result.error.code}` : undefined;
}

describe("JSON that is no answer of the protocol", () => {
  it.each([
    ["openai-chat", '{"detail":"Not Found"}'],
    ["openai-chat", '{"ok":true}'],
    ["openai-chat", '{"choices":'],
    ["openai-chat", "[]"],
    ["openai-chat", '{"a":nonsense}'],
    ["anthropic-messages", '{"hello":"world"}'],
    ["openai-responses", '{"status":"healthy"}'],
    ["openai-chat", "upstream connect error or disconnect/reset before headers"],
  ])("%s: %s fails as an invalid body", async (protocol, body) => {
    expect(await codeOf(protocol, body)).toBe("502 upstream_invalid_body");
  });
});

describe("JSON that is a whole answer of the protocol", () => {
  it.each([
    ["openai-chat", '{"choices":[{"message":{"role":"assistant","content":"Hi"}}]}'],
    ["ollama", '{"message":{"role":"assistant","content":"Hi"},"done":true}'],
  ])("%s: %s is complete, whether or not it says why it ended", async (protocol, body) => {
    const result = await gateStream(new CaseSource([Buffer.from(body)], "eof"), { protocol });
    if (result.status === "rejected") throw result.error;
    const chunks: Uint8Array[] = [];
    for await (const chunk of result.body) chunks.push(chunk);
    expect(Buffer.concat(chunks).toString()).toBe(body);
  });
});
