/** The part of the adapter contract that the vendors' own clients judge. Kept out of `src`: it needs the SDKs. */

import { Anthropic } from "@anthropic-ai/sdk";
import { OpenAI } from "openai";
import { describe, expect, it } from "vitest";
import {
  anthropicErrorFirst,
  anthropicHealthy,
  anthropicTruncatedAfterText,
  chatErrorFirst,
  chatHealthy,
  chatTruncatedAfterText,
  json,
  noResponse,
  reset,
  responsesErrorThenFailed,
  responsesFailedAfterCreated,
  responsesHealthy,
  responsesTruncatedAfterText,
  sse,
} from "../../src/testing/index.js";
import type { AdapterHarness, Script } from "../../src/testing/index.js";
import { protocolNamed } from "../../src/testing/contract/client-protocols.js";
import { inScenario } from "../../src/testing/contract/scenario.js";
import type { Scenario, ScenarioOptions } from "../../src/testing/contract/scenario.js";

const messages = protocolNamed("Messages");
const responses = protocolNamed("Responses");
const chat = protocolNamed("Chat Completions");

const ask = { model: "fast", max_tokens: 100, messages: [{ role: "user" as const, content: "Say something." }] };
const askResponses = { model: "fast", input: "Say something." };

interface Clients {
  readonly anthropic: Anthropic;
  readonly openai: OpenAI;
  /** Requests that reached the gateway. */
  readonly requests: () => number;
}

function clientsOf(world: Scenario, maxRetries: number): Clients {
  const { url } = world.app;
  return {
    anthropic: new Anthropic({ apiKey: "of-the-client", baseURL: url, maxRetries }),
    openai: new OpenAI({ apiKey: "of-the-client", baseURL: `${url}/v1`, maxRetries }),
    requests: () => world.events.filter((event) => event.type === "request-start").length,
  };
}

async function failureOf(promise: Promise<unknown>): Promise<Record<string, unknown>> {
  try {
    await promise;
  } catch (error) {
    return error as Record<string, unknown>;
  }
  throw new Error("The client saw no failure");
}

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const event of stream) void event;
}

export function sdkContract(harness: AdapterHarness): void {
  const inWorld = (
    options: ScenarioOptions & { maxRetries?: number },
    run: (clients: Clients, world: Scenario) => Promise<void>,
  ): Promise<void> => inScenario(harness, options, (world) => run(clientsOf(world, options.maxRetries ?? 0), world));

  describe(`${harness.name}: official clients`, () => {
    answers(inWorld);
    typedErrors(inWorld);
    brokenStreams(inWorld);
    retries(inWorld);
  });
}

type InWorld = (
  options: ScenarioOptions & { maxRetries?: number },
  run: (clients: Clients, world: Scenario) => Promise<void>,
) => Promise<void>;

function answers(inWorld: InWorld): void {
  it("Anthropic reads the fallback's message after an overload", () => {
    const scripts = { first: sse(anthropicErrorFirst()), second: sse(anthropicHealthy({ text: "one two" })) };
    return inWorld({ protocol: messages, ...scripts }, async ({ anthropic }) => {
      expect(await anthropic.messages.stream(ask).finalText()).toBe("one two");
    });
  });

  it("OpenAI reads the fallback's response after response.failed", () => {
    const scripts = { first: sse(responsesFailedAfterCreated()), second: sse(responsesHealthy({ text: "one two" })) };
    return inWorld({ protocol: responses, ...scripts }, async ({ openai }) => {
      expect((await openai.responses.stream(askResponses).finalResponse()).output_text).toBe("one two");
    });
  });

  it("OpenAI reads the fallback's chat completion after an error event", () => {
    const scripts = { first: sse(chatErrorFirst()), second: sse(chatHealthy({ text: "one two" })) };
    return inWorld({ protocol: chat, ...scripts }, async ({ openai }) => {
      expect(await openai.chat.completions.stream(ask).finalContent()).toBe("one two");
    });
  });

  it("both read non-streaming answers", async () => {
    await inWorld({ protocol: messages, first: json(200, messages.complete()) }, async ({ anthropic }) => {
      expect((await anthropic.messages.create(ask)).stop_reason).toBe("end_turn");
    });
    await inWorld({ protocol: chat, first: json(200, chat.complete()) }, async ({ openai }) => {
      expect((await openai.chat.completions.create(ask)).choices[0]?.finish_reason).toBe("stop");
    });
  });
}

function typedErrors(inWorld: InWorld): void {
  it("Anthropic throws InternalServerError on an overload", () =>
    inWorld({ protocol: messages, first: sse(anthropicErrorFirst()) }, async ({ anthropic }) => {
      const error = await failureOf(anthropic.messages.stream(ask).finalMessage());
      expect(error).toBeInstanceOf(Anthropic.InternalServerError);
      expect(error).toMatchObject({ status: 503, type: "overloaded_error" });
    }));

  it("Anthropic throws RateLimitError on a rate limit inside the stream", () => {
    const first = sse(anthropicErrorFirst({ type: "rate_limit_error", message: "Slow down." }));
    return inWorld({ protocol: messages, first }, async ({ anthropic }) => {
      const error = await failureOf(anthropic.messages.create({ ...ask, stream: true }));
      expect(error).toBeInstanceOf(Anthropic.RateLimitError);
    });
  });

  it("OpenAI throws RateLimitError with the provider's code", () =>
    inWorld({ protocol: responses, first: sse(responsesErrorThenFailed()) }, async ({ openai }) => {
      const error = await failureOf(openai.responses.create({ ...askResponses, stream: true }));
      expect(error).toBeInstanceOf(OpenAI.RateLimitError);
      expect(error).toMatchObject({ status: 429, code: "rate_limit_exceeded" });
      expect(error["message"]).toContain("Rate limit reached for gpt-5.1 (rate_limit_exceeded)");
    }));

  it("OpenAI throws InternalServerError on a server error in a chat completion", () =>
    inWorld({ protocol: chat, first: sse(chatErrorFirst()) }, async ({ openai }) => {
      const error = await failureOf(openai.chat.completions.create({ ...ask, stream: true }));
      expect(error).toBeInstanceOf(OpenAI.InternalServerError);
      expect(error).toMatchObject({ status: 500, type: "server_error" });
    }));

  it("both throw NotFoundError on an unknown model", async () => {
    await inWorld({ protocol: messages, first: [] }, async ({ anthropic }) => {
      const error = await failureOf(anthropic.messages.create({ ...ask, model: "unheard-of" }));
      expect(error).toBeInstanceOf(Anthropic.NotFoundError);
    });
    await inWorld({ protocol: chat, first: [] }, async ({ openai }) => {
      const error = await failureOf(openai.chat.completions.create({ ...ask, model: "unheard-of" }));
      expect(error).toBeInstanceOf(OpenAI.NotFoundError);
      expect(error).toMatchObject({ code: "model_not_found" });
    });
  });

  it("both throw AuthenticationError and PermissionDeniedError when the host rejects", async () => {
    const rejecting = (reject: 401 | 403): Pick<ScenarioOptions, "app"> => ({
      app: { options: { identify: () => ({ reject }) } },
    });
    await inWorld({ protocol: messages, first: [], ...rejecting(401) }, async ({ anthropic }) => {
      expect(await failureOf(anthropic.messages.create(ask))).toBeInstanceOf(Anthropic.AuthenticationError);
    });
    await inWorld({ protocol: chat, first: [], ...rejecting(403) }, async ({ openai }) => {
      expect(await failureOf(openai.chat.completions.create(ask))).toBeInstanceOf(OpenAI.PermissionDeniedError);
    });
  });
}

function brokenStreams(inWorld: InWorld): void {
  const broken = (events: string[]): Script => sse(events, { after: [reset()] });

  it("Anthropic throws when the stream breaks after release", () =>
    inWorld({ protocol: messages, first: broken(anthropicTruncatedAfterText()) }, async ({ anthropic }) => {
      const stream = await anthropic.messages.create({ ...ask, stream: true });
      await expect(drain(stream)).rejects.toThrow(/terminated|connection/i);
    }));

  it("OpenAI sees the failed response when a Responses stream breaks after release", () =>
    inWorld({ protocol: responses, first: broken(responsesTruncatedAfterText()) }, async ({ openai }) => {
      const seen: string[] = [];
      const stream = await openai.responses.create({ ...askResponses, stream: true });
      const failure = failureOf(
        (async () => {
          for await (const event of stream) seen.push(event.type);
        })(),
      );
      await failure;
      expect(seen.at(-1)).toBe("response.failed");
    }));

  it("OpenAI throws an API error when a chat completion breaks after release", () =>
    inWorld({ protocol: chat, first: broken(chatTruncatedAfterText()) }, async ({ openai }) => {
      const stream = await openai.chat.completions.create({ ...ask, stream: true });
      expect(await failureOf(drain(stream))).toBeInstanceOf(OpenAI.APIError);
    }));
}

function retries(inWorld: InWorld): void {
  it("the clients do not repeat a request that timed out", async () => {
    const headers = { "x-tfy-ttft-timeout-ms": "50" };
    await inWorld({ protocol: messages, first: noResponse(), maxRetries: 2 }, async ({ anthropic, requests }) => {
      const error = await failureOf(anthropic.messages.create({ ...ask, stream: true }, { headers }));
      expect(error["status"]).toBe(408);
      expect(requests()).toBe(1);
    });
    await inWorld({ protocol: responses, first: noResponse(), maxRetries: 2 }, async ({ openai, requests }) => {
      const error = await failureOf(openai.responses.create({ ...askResponses, stream: true }, { headers }));
      expect(error).toMatchObject({ status: 408, code: "ttft_timeout" });
      expect(requests()).toBe(1);
    });
  });

  it("the client does not repeat a request that is out of quota", () => {
    const first = sse(responsesFailedAfterCreated({ code: "insufficient_quota", message: "You exceeded your quota." }));
    return inWorld({ protocol: responses, first, maxRetries: 2 }, async ({ openai, requests }) => {
      const error = await failureOf(openai.responses.create({ ...askResponses, stream: true }));
      expect(error).toMatchObject({ status: 429, code: "insufficient_quota" });
      expect(requests()).toBe(1);
    });
  });

  it("the client repeats a request that may succeed", () => {
    const first = (_request: unknown, index: number): Script =>
      sse(index === 0 ? chatErrorFirst() : chatHealthy({ text: "one two" }));
    return inWorld({ protocol: chat, first, maxRetries: 1 }, async ({ openai, requests }) => {
      expect(await openai.chat.completions.stream(ask).finalContent()).toBe("one two");
      expect(requests()).toBe(2);
    });
  });
}
