/** The recorded stream openings over real HTTP: a scripted provider plays them, a running app answers for them. */

import { request as httpRequest, type IncomingHttpHeaders } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { constants, gunzipSync } from "node:zlib";
import type { GatewayConfig } from "@first-chunk/core";
import { chunk, end, head, hold, reset, startScriptedProvider, until, wait } from "@first-chunk/core/testing";
import type { ReceivedRequest, RunningApp, Script, ScriptedProvider } from "@first-chunk/core/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RawClient } from "../src/testing/contract/raw-client.js";
import { joined, streamCases, type StreamCase } from "./stream-cases.js";

/** In ms. The stalled cases alone take that long. */
const ttftTimeoutMs = 400;
/** How long nothing must come to a client that has to wait. */
const silenceMs = 150;

interface Call {
  readonly provider: "openai" | "anthropic" | "google" | "aws" | "ollama";
  readonly path: (model: string) => string;
  readonly body: object;
}

const messages = [{ role: "user", content: "Hi" }];

const calls: Readonly<Record<string, Call>> = {
  "anthropic-messages": {
    provider: "anthropic",
    path: () => "/v1/messages",
    body: { max_tokens: 9, stream: true, messages },
  },
  "openai-chat": { provider: "openai", path: () => "/v1/chat/completions", body: { stream: true, messages } },
  "openai-responses": { provider: "openai", path: () => "/v1/responses", body: { stream: true, input: "Hi" } },
  gemini: {
    provider: "google",
    path: (model) => `/v1beta/models/${model}:streamGenerateContent?alt=sse`,
    body: { contents: [] },
  },
  "gemini-interactions": {
    provider: "google",
    path: () => "/v1beta/interactions",
    body: { stream: true, input: "Hi" },
  },
  "bedrock-invoke": {
    provider: "aws",
    path: (model) => `/model/${model}/invoke-with-response-stream`,
    body: { max_tokens: 9, messages },
  },
  "bedrock-converse": { provider: "aws", path: (model) => `/model/${model}/converse-stream`, body: { messages: [] } },
  ollama: { provider: "ollama", path: () => "/api/chat", body: { messages } },
};

function configFor(url: string): GatewayConfig {
  return {
    providers: {
      openai: { type: "openai", baseUrl: `${url}/v1`, apiKey: "k" },
      anthropic: { type: "anthropic", baseUrl: url, apiKey: "k" },
      google: { type: "google", baseUrl: url, apiKey: "k" },
      aws: { type: "bedrock", baseUrl: url, apiKey: "k" },
      ollama: { type: "ollama", baseUrl: url },
    },
    directModels: true,
    retry: { attempts: 0 },
    cooldown: false,
  };
}

const byId = new Map(streamCases.map((one) => [one.id, one]));

/** The case is the model that the provider is asked for. */
function caseOf(received: ReceivedRequest): StreamCase {
  const inPath = decodeURIComponent(/\/models?\/([^/:]+)/.exec(received.path)?.[1] ?? "");
  const id = inPath === "" ? (JSON.parse(received.body.toString()) as { model: string }).model : inPath;
  const found = byId.get(id);
  if (found === undefined) throw new Error(`there is no case ${id}`);
  return found;
}

function scriptOf(one: StreamCase, sent: () => void): Script {
  const { content_type: type, content_encoding: encoding } = one.http;
  const headers = {
    ...(type === "" ? {} : { "content-type": type }),
    ...(encoding === undefined ? {} : { "content-encoding": encoding }),
  };
  const body = one.chunks.filter((bytes) => bytes.length > 0).map((bytes) => chunk(bytes));
  const repeated = one.repeatsLastChunk
    ? Array.from({ length: 40 }, () => [wait(ttftTimeoutMs / 10), ...body.slice(-1)]).flat()
    : [];
  const told = until(() => {
    sent();
    return Promise.resolve();
  });
  const ends: Record<StreamCase["end"], Script> = {
    open: [hold()],
    stall: [...repeated, hold()],
    eof: [end()],
    reset: [reset()],
  };
  return [head(one.http.status, headers), ...body, told, ...ends[one.end]];
}

export interface HttpOutcome {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Reads until the body ends or `enough` bytes are there, then leaves. */
function ask(url: string, headers: Record<string, string>, body: string, enough: number): Promise<HttpOutcome> {
  return new Promise((resolve, fail) => {
    const request = httpRequest(url, { method: "POST", headers, agent: false }, (response) => {
      const parts: Buffer[] = [];
      let length = 0;
      const done = (): void => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(parts) });
        request.destroy();
      };
      response.on("data", (part: Buffer) => {
        parts.push(part);
        length += part.length;
        if (length >= enough && response.statusCode === 200) done();
      });
      // A stream that is cut short after release breaks, after its bytes.
      response.on("close", done);
      response.on("error", () => undefined);
    });
    request.on("error", fail);
    request.end(body);
  });
}

/** What the client should get of a released stream. */
function released(one: StreamCase): Buffer {
  const bytes = Buffer.from(joined(one.chunks));
  return one.http.content_encoding === "gzip" ? gunzipSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH }) : bytes;
}

/** How the whole battery of cases runs against one app: all of them at once, each judged in a test of its own. */
export function httpCases(
  name: string,
  start: (config: GatewayConfig) => Promise<Pick<RunningApp, "url" | "close">>,
): void {
  describe(`recorded stream openings through ${name}`, () => {
    const outcomes = new Map<string, Promise<HttpOutcome | number>>();
    const sent = new Map<string, () => void>();
    let provider: ScriptedProvider;
    let app: Pick<RunningApp, "url" | "close">;

    beforeAll(async () => {
      provider = await startScriptedProvider((received) => {
        const one = caseOf(received);
        return scriptOf(one, () => sent.get(one.id)?.());
      });
      app = await start(configFor(provider.url));
      for (const one of streamCases) {
        const outcome = run(one);
        // A failed run belongs to the test that reads it.
        outcome.catch(() => undefined);
        outcomes.set(one.id, outcome);
      }
    });

    afterAll(async () => {
      await app.close();
      await provider.close();
    });

    async function run(one: StreamCase): Promise<HttpOutcome | number> {
      const call = calls[one.protocol];
      const model = `${call.provider}/${one.id}`;
      const path = call.path(encodeURIComponent(model));
      const body = JSON.stringify({ model, ...call.body });
      const headers = {
        "content-type": "application/json",
        ...(one.end === "stall" ? { "x-tfy-ttft-timeout-ms": String(ttftTimeoutMs) } : {}),
      };
      if (one.expected.action !== "wait") return ask(`${app.url}${path}`, headers, body, released(one).length);
      const allSent = new Promise<void>((resolve) => sent.set(one.id, resolve));
      const client = await RawClient.send(app.url, { path, headers, body });
      await allSent;
      await sleep(silenceMs);
      client.leave();
      return client.byteLength;
    }

    it.each(streamCases.map((one) => [one.id, one] as const))("%s", async (id, one) => {
      const outcome = await (outcomes.get(id) as Promise<HttpOutcome | number>);
      if (typeof outcome === "number") expect(outcome).toBe(0);
      else if (one.expected.action === "release") expectReleased(one, outcome);
      else expectFailed(one, outcome);
    });
  });
}

function expectReleased(one: StreamCase, { status, headers, body }: HttpOutcome): void {
  expect([status, headers["content-encoding"]]).toEqual([200, undefined]);
  const wanted = released(one);
  expect(body.subarray(0, wanted.length).equals(wanted)).toBe(true);
  if (one.end === "open") expect(body.length).toBe(wanted.length);
}

function expectFailed(one: StreamCase, { status, headers, body }: HttpOutcome): void {
  const { expected } = one;
  // A credential that the provider refused is the gateway's, not the client's.
  const masked = expected.status === 401 || expected.status === 402;
  expect(status).toBe(masked ? 502 : expected.status);
  const trail = /;status=(\d+);code=([^;]+);/.exec(String(headers["x-tfy-attempt-trail"]));
  expect(trail?.[1]).toBe(String(expected.status));
  if (expected.code !== undefined) expect(trail?.[2]).toBe(expected.code);
  if (expected.retryable !== undefined) {
    expect(headers["x-should-retry"]).toBe(expected.retryable && expected.status !== 408 ? undefined : "false");
  }
  expect(headers["content-type"]).toBe("application/json");
  expect(JSON.parse(body.toString())).toEqual(expect.objectContaining({}));
}
