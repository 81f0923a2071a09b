/** A protocol that the package does not know, written by someone who has nothing but its public entry. */

import {
  completeOutput,
  createStreamDecoder,
  encodeSse,
  findInBandError,
  gateStream,
  neutral,
  output,
  type GateProtocol,
  type ParsedFrame,
  type Verdict,
} from "@first-chunk/core";
import * as gateEntry from "@first-chunk/core/gate";
import { describe, expect, it } from "vitest";

interface CohereEvent {
  readonly type?: string;
  readonly delta?: {
    readonly finish_reason?: string;
    readonly message?: { readonly content?: { readonly text?: string } };
    readonly usage?: { readonly tokens?: { readonly output_tokens?: number } };
  };
}

/** https://docs.cohere.com/v2/docs/streaming */
function classify(frame: ParsedFrame): Verdict {
  const failure = findInBandError(frame, {});
  if (failure !== undefined) return failure;
  const { type, delta } = (frame.value ?? {}) as CohereEvent;
  if (type === "content-delta") return delta?.message?.content?.text ? output : neutral;
  if (type === "tool-call-start") return output;
  if (type !== "message-end")
    return frame.source === "json" && frame.data.includes('"finish_reason"') ? completeOutput : neutral;
  const reason = delta?.finish_reason === "COMPLETE" ? "stop" : delta?.finish_reason;
  return { kind: "terminal", reason, outputTokens: delta?.usage?.tokens?.output_tokens, final: true, complete: true };
}

const cohere: GateProtocol = {
  name: "cohere-chat",
  createDecoder: createStreamDecoder,
  framing: "blank-line",
  classify,
  alwaysReportsUsage: true,
  watchMarkers: ["message-end", "error"],
  contentType: "text/event-stream",
  onMidStreamFailure: "event",
  errorBody: ({ message }) => JSON.stringify({ message }),
  errorEvent: ({ failure }) => encodeSse("error", { message: failure.message }),
};

async function* streamOf(...events: readonly object[]): AsyncGenerator<Uint8Array> {
  for (const event of events)
    yield new TextEncoder().encode(
      `event: ${"type" in event ? String(event.type) : ""}\ndata: ${JSON.stringify(event)}\n\n`,
    );
}

const start = { type: "message-start", delta: { message: { role: "assistant" } } };
const blank = { type: "content-start", index: 0, delta: { message: { content: { type: "text", text: "" } } } };
const text = { type: "content-delta", index: 0, delta: { message: { content: { text: "Hi" } } } };
const ended = (output_tokens: number): object => ({
  type: "message-end",
  delta: { finish_reason: "COMPLETE", usage: { tokens: { output_tokens } } },
});

describe("a protocol from outside the package", () => {
  it("is released at its first output, and complete at its last event", async () => {
    const result = await gateStream(streamOf(start, blank, text, ended(2)), { protocol: cohere });
    if (result.status !== "released") throw result.error;
    let bytes = "";
    for await (const chunk of result.body) bytes += Buffer.from(chunk).toString();
    expect(bytes).toContain('"text":"Hi"');
    expect(bytes).toContain("message-end");
  });

  it("is broken after release where its last event is missing", async () => {
    const result = await gateStream(streamOf(start, text), { protocol: cohere });
    if (result.status !== "released") throw result.error;
    const read = async (): Promise<void> => {
      for await (const chunk of result.body) expect(chunk.length).toBeGreaterThan(0);
    };
    await expect(read()).rejects.toMatchObject({ code: "upstream_truncated_stream" });
  });

  it("fails by the rules that hold for every protocol", async () => {
    const error = { error: { code: 429, message: "trial key" } };
    expect(await gateStream(streamOf(start, error), { protocol: cohere })).toMatchObject({
      status: "rejected",
      error: { status: 429 },
    });
    expect(await gateStream(streamOf(start, blank, ended(0)), { protocol: cohere })).toMatchObject({
      error: { code: "upstream_empty_completion" },
    });
    expect(await gateStream(streamOf(start, blank), { protocol: cohere })).toMatchObject({
      error: { code: "upstream_truncated_stream" },
    });
  });

  it("finds what it needs at the gate's own entry, too", () => {
    expect(gateEntry.createStreamDecoder).toBe(createStreamDecoder);
    expect(gateEntry.createNdjsonDecoder().push(Buffer.from("{}\n"))).toHaveLength(1);
  });
});
