/** What becomes of a stream after release, in every protocol. */

import { describe, expect, it } from "vitest";
import type { ProviderConfig } from "../src/config.js";
import { createGateway } from "../src/gateway.js";
import type { ObserverEvent } from "../src/observability/observer.js";
import { ManualClock } from "../src/testing/manual-clock.js";
import { awsChunk, awsEvent, awsException } from "./fixtures/aws-messages.js";
import { Run } from "./fallback/serving.js";
import { broken, connected, data, end, head, ScriptedUpstream, type Step } from "./scripted-upstream.js";

type Wire = string | Buffer;

interface Case {
  readonly type: ProviderConfig["type"];
  readonly url: string;
  readonly body: object;
  /** Releases the stream and does not complete it. */
  readonly output: Wire;
  /** What completes it. */
  readonly completing: Readonly<Record<string, Wire>>;
  readonly error: Wire;
  /** What is appended where it breaks; undefined: nothing. */
  readonly appended: RegExp | undefined;
}

const event = (value: unknown, name?: string): string =>
  `${name === undefined ? "" : `event: ${name}\n`}data: ${JSON.stringify(value)}\n\n`;
const named = (value: { type: string }): string => event(value, value.type);
const model = { model: "m", stream: true };

const protocols: Readonly<Record<string, Case>> = {
  "anthropic-messages": {
    type: "anthropic",
    url: "/v1/messages",
    body: model,
    output: named({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "hi" } } as never),
    completing: { message_stop: named({ type: "message_stop" }) },
    error: named({ type: "error", error: { type: "api_error", message: "Broke." } } as never),
    appended: undefined,
  },
  "openai-responses": {
    type: "openai",
    url: "/v1/responses",
    body: model,
    output: named({ type: "response.output_text.delta", sequence_number: 4, delta: "hi" } as never),
    completing: {
      "response.completed": named({
        type: "response.completed",
        response: { status: "completed", output: [] },
      } as never),
      "response.incomplete": named({
        type: "response.incomplete",
        response: { incomplete_details: { reason: "max_output_tokens" } },
      } as never),
    },
    error: named({
      type: "response.failed",
      response: { error: { code: "server_error", message: "Broke." } },
    } as never),
    appended: /^\n\nevent: response\.failed\ndata: \{"type":"response\.failed","sequence_number":5,/,
  },
  "openai-chat": {
    type: "openai",
    url: "/v1/chat/completions",
    body: model,
    output: event({ choices: [{ delta: { content: "hi" } }] }),
    completing: {
      "[DONE]": "data: [DONE]\n\n",
      "a finish reason": event({ choices: [{ delta: {}, finish_reason: "stop" }] }),
      "another finish reason": event({ choices: [{ delta: {}, finish_reason: "length" }] }),
    },
    error: event({ error: { message: "Broke.", type: "server_error" } }),
    appended: /^\n\ndata: \{"error":\{"message":/,
  },
  gemini: {
    type: "google",
    url: "/v1beta/models/m:streamGenerateContent?alt=sse",
    body: {},
    output: event({ candidates: [{ content: { parts: [{ text: "hi" }] } }] }),
    completing: {
      "a finish reason": event({ candidates: [{ content: { parts: [{ text: "!" }] }, finishReason: "STOP" }] }),
      "a block reason": event({ promptFeedback: { blockReason: "SAFETY" } }),
    },
    error: event({ error: { code: 500, message: "Broke.", status: "INTERNAL" } }),
    appended: /^\n\ndata: \{"error":\{"code":50[24],/,
  },
  "gemini-interactions": {
    type: "google",
    url: "/v1beta/interactions",
    body: model,
    output: event({ event_type: "step.delta", index: 0, delta: { type: "text", text: "hi" } }, "step.delta"),
    completing: {
      "interaction.completed": event(
        { event_type: "interaction.completed", interaction: { status: "completed" } },
        "interaction.completed",
      ),
    },
    error: event({ event_type: "error", error: { code: "internal", message: "Broke." } }, "error"),
    appended: /^\n\nevent: error\ndata: \{"event_type":"error",/,
  },
  "bedrock-invoke": {
    type: "bedrock",
    url: "/model/m/invoke-with-response-stream",
    body: {},
    output: awsChunk({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "hi" } }),
    completing: { message_stop: awsChunk({ type: "message_stop" }) },
    error: awsException("modelStreamErrorException", { message: "Broke." }),
    appended: /:exception-type/,
  },
  "bedrock-converse": {
    type: "bedrock",
    url: "/model/m/converse-stream",
    body: {},
    output: awsEvent("contentBlockDelta", { contentBlockIndex: 0, delta: { text: "hi" } }),
    completing: { messageStop: awsEvent("messageStop", { stopReason: "end_turn" }) },
    error: awsException("modelStreamErrorException", { message: "Broke." }),
    appended: /:exception-type/,
  },
  ollama: {
    type: "ollama",
    url: "/api/chat",
    body: model,
    output: `${JSON.stringify({ message: { role: "assistant", content: "hi" }, done: false })}\n`,
    completing: {
      "done: true": `${JSON.stringify({ message: { role: "assistant", content: "" }, done: true, done_reason: "stop" })}\n`,
    },
    error: `${JSON.stringify({ error: "Broke." })}\n`,
    appended: /^\n\{"error":/,
  },
};

interface Outcome {
  readonly run: Run;
  readonly observed: readonly ObserverEvent[];
  readonly appended: string;
  readonly aborted: boolean;
}

/** Serves one request with these pieces and this end, to the end of every clock. */
async function serve(
  name: string,
  wires: readonly Wire[],
  last: readonly Step[],
  config: object = {},
  provider: object = {},
): Promise<Outcome> {
  const { type, url, body } = protocols[name];
  const clock = new ManualClock();
  const upstream = new ScriptedUpstream(clock, {
    "http://p.test": { steps: [connected(), head(), ...wires.map((wire) => data(wire)), ...last] },
  });
  const observed: ObserverEvent[] = [];
  const providers = { p: { type, baseUrl: "http://p.test", apiKey: "key", ...provider } } as never;
  const gateway = createGateway(
    {
      providers,
      models: { m: { targets: [{ target: "p/m" }] } },
      observers: [{ onEvent: (one) => void observed.push(one) }],
      ...config,
    },
    { clock, client: upstream, env: {} },
  );
  const bytes = new TextEncoder().encode(JSON.stringify(body));
  const run = new Run(
    gateway,
    {
      method: "POST",
      url,
      headers: { "content-type": "application/json" },
      body: bytes,
      signal: new AbortController().signal,
    },
    true,
  );
  await clock.advance(700_000);
  expect(clock.pending).toBe(0);
  expect(observed.at(-1)?.type).toBe("request-end");
  const sent = Buffer.concat(wires.map((wire) => Buffer.from(wire))).toString();
  const decoded = new TextDecoder().decode(Buffer.from(sent));
  expect(run.text.startsWith(decoded)).toBe(true);
  return { run, observed, appended: run.text.slice(decoded.length), aborted: upstream.calls[0]?.aborted };
}

const breaks: Readonly<Record<string, { readonly last: readonly Step[]; readonly kind: string }>> = {
  "a reset": { last: [broken()], kind: "network" },
  "a clean end": { last: [end()], kind: "truncated-stream" },
  silence: { last: [], kind: "idle-timeout" },
};

const names = Object.keys(protocols);
const completions = names.flatMap((name) =>
  Object.entries(protocols[name].completing).map(([what, wire]) => [name, what, wire] as const),
);
const failing = (observed: readonly ObserverEvent[]) => observed.filter((one) => one.type === "stream-fail");

describe.each(completions)("%s: a stream is complete with %s", (name, _what, wire) => {
  const { output } = protocols[name];

  it.each(Object.entries({ "ends cleanly": [end()], "is reset": [broken()], "is left open": [] as Step[] }))(
    "and may be one that %s",
    async (_how, last) => {
      const { run, observed, appended } = await serve(name, [output, wire], last);
      expect(run.end).toEqual({ type: "finish" });
      expect(appended).toBe("");
      expect(failing(observed)).toEqual([]);
      expect(observed.at(-1)).toMatchObject({ outcome: "success", status: 200 });
    },
  );

  it("also where it comes byte by byte", async () => {
    const bytes = [...Buffer.from(wire)].map((byte) => Buffer.of(byte));
    const { run } = await serve(name, [output, ...bytes], [broken()]);
    expect(run.end).toEqual({ type: "finish" });
  });
});

describe.each(names)("%s: a stream that breaks after release", (name) => {
  const { output, appended: expected } = protocols[name];

  it.each(Object.entries(breaks))("by %s is a failure of the provider, told once", async (_how, { last, kind }) => {
    const { run, observed, appended, aborted } = await serve(name, [output], last);
    expect(run.end).toMatchObject({ type: "fail" });
    expect(failing(observed)).toMatchObject([{ failure: { kind } }]);
    expect(observed.at(-1)).toMatchObject({ outcome: "failure", status: 200 });
    if (expected === undefined) expect(appended).toBe("");
    else expect(appended).toMatch(expected);
    expect(aborted || last.length > 0).toBe(true);
  });

  it("by a request timeout that is set ends although bytes keep coming", async () => {
    const more = Array.from({ length: 5 }, () => data(output, 100_000));
    const { run, observed, aborted } = await serve(name, [output], more, { timeouts: { requestTimeoutMs: 350_000 } });
    expect(run.end).toMatchObject({ type: "fail", failure: { kind: "request-timeout" } });
    expect(failing(observed)).toHaveLength(1);
    expect(aborted).toBe(true);
  });

  it('is destroyed without a word with onMidStreamFailure: "abort"', async () => {
    const { run, appended } = await serve(name, [output], [broken()], { onMidStreamFailure: "abort" });
    expect(run.end).toMatchObject({ type: "fail" });
    expect(appended).toBe("");
  });

  it('is told with onMidStreamFailure: "event"', async () => {
    const { appended } = await serve(name, [output], [broken()], { onMidStreamFailure: "event" });
    expect(appended).not.toBe("");
  });

  it("by a clean end may do so where the provider need not complete its streams", async () => {
    const { run, observed, appended } = await serve(name, [output], [end()], {}, { requireTerminal: false });
    expect(run.end).toEqual({ type: "finish" });
    expect(appended).toBe("");
    expect(observed.find((one) => one.type === "stream-end")).toMatchObject({ complete: false });
    expect(failing(observed)).toEqual([]);
  });
});

describe.each(names)("%s: an error event after release", (name) => {
  const { output, error } = protocols[name];

  it.each(Object.entries({ "a clean end": [end()], "a reset": [broken()], silence: [] as Step[] }))(
    "is passed on, recorded once, and nothing is appended after %s",
    async (_how, last) => {
      const { run, observed, appended } = await serve(name, [output, error, error], last, {
        onMidStreamFailure: "event",
      });
      expect(appended).toBe("");
      expect(run.ends).toBe(1);
      expect(failing(observed)).toHaveLength(1);
      expect(failing(observed)).toMatchObject([{ failure: { kind: "in-band" } }]);
      expect(observed.at(-1)).toMatchObject({ outcome: "failure", status: 200 });
    },
  );

  it("does not keep back what follows it", async () => {
    const { appended } = await serve(name, [output, error, output], [end()]);
    expect(appended).toBe("");
  });
});

it("cut within an event, an error event begins with a blank line of its own", async () => {
  const { appended } = await serve("openai-chat", [protocols["openai-chat"]?.output ?? "", 'data: {"a'], [broken()]);
  expect(appended).toMatch(/^\n\ndata: \{"error"/);
});

describe("a JSON body", () => {
  const whole = JSON.stringify({
    object: "chat.completion",
    choices: [{ message: { role: "assistant", content: "hi" }, finish_reason: "stop" }],
  });

  it("is complete when it parses", async () => {
    const { run } = await serve("openai-chat", [whole], [broken()]);
    expect(run.end).toEqual({ type: "finish" });
  });

  it("in an array that breaks off gets no event", async () => {
    const first = `[${JSON.stringify({ candidates: [{ content: { parts: [{ text: "hi" }] } }] })}`;
    const { run, appended } = await serve("gemini", [first], [broken()], { onMidStreamFailure: "event" });
    expect(run.end).toMatchObject({ type: "fail" });
    expect(appended).toBe("");
  });
});
