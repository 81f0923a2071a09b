/** Values that must not get to the other side, on every path: each is written into every place where one could stand. */

import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import type { GatewayConfig } from "../../src/config.js";
import { afterOutput, beforeOutput, event } from "./hostile-answers.js";
import { healthyAnswer, openHead, output, tcpProvider } from "./tcp-provider.js";
import type { Play } from "./tcp-provider.js";
import { chatBody, world } from "./world.js";

/** In the client's request: for the host or the gateway, never for a provider. */
const clientCanary = "canary-of-the-client";
/** In the client's request body: for the provider, never for a log. */
const bodyCanary = "canary-of-the-body";
/** The gateway's credentials at the provider. */
const keyCanary = "canary-key-0123456789";
const ownHeaderCanary = "canary-own-header-0123";
/** In the provider's headers. */
const providerCanary = "canary-of-the-provider";
/** In the provider's wording: for the client, never for a log. */
const wordingCanary = "canary-of-the-wording";

const clientHeaders = Object.fromEntries(
  [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "openai-organization",
    "openai-project",
    "x-forwarded-for",
    "forwarded",
    "via",
    "referer",
    "origin",
    "user-agent",
    "x-secret",
    "x_api_key",
    "x-tfy-ttft",
    "accept-language",
  ].map((name) => [name, clientCanary]),
);

const providerHeaders = [
  "set-cookie",
  "server",
  "www-authenticate",
  "authorization",
  "x-api-key",
  "openai-organization",
  "alt-svc",
  "via",
  "link",
  "x-secret",
  "location",
]
  .map((name) => `${name}: ${providerCanary}\r\n`)
  .join("");

/** The same answer, with headers that say too much. */
function decorated(play: Play): Play {
  return (socket, request, index) => {
    const decorate = (bytes: string | Uint8Array | undefined): string | Uint8Array | undefined => {
      if (bytes === undefined) return undefined;
      const text = Buffer.from(bytes as string).toString("latin1");
      return /^HTTP\/1\.1 [2-9]/.test(text)
        ? Buffer.from(text.replace("\r\n", `\r\n${providerHeaders}`), "latin1")
        : bytes;
    };
    const { write, end } = socket;
    socket.write = (bytes: string, ...rest: []) => write.call(socket, decorate(bytes) as string, ...rest);
    socket.end = ((bytes: string, ...rest: []) =>
      end.call(socket, decorate(bytes) as string, ...rest)) as Socket["end"];
    play(socket, request, index);
  };
}

function refusing(status: number, body: unknown): Play {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return (socket) =>
    void socket.end(
      `HTTP/1.1 ${status} No\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ${text.length}\r\n\r\n${text}`,
    );
}

/** A provider that repeats what it was sent. */
const telling = `${wordingCanary}: the key ${keyCanary} (Bearer ${keyCanary}) and ${ownHeaderCanary} are wrong`;
const error = { message: telling, type: "invalid_request_error", code: keyCanary, param: keyCanary };

const paths: readonly { readonly name: string; readonly play: Play }[] = [
  ...[400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 501, 503, 529].map((status) => ({
    name: `HTTP ${status}`,
    play: refusing(status, { error }),
  })),
  { name: "HTTP 500 in plain text", play: refusing(500, telling) },
  { name: "HTTP 500 as a page", play: refusing(500, `<html>${telling}</html>`) },
  { name: "HTTP 500 as an array", play: refusing(500, [{ error: telling }]) },
  { name: "an error in the stream", play: (socket) => void socket.end(openHead + event({ error })) },
  { name: "an error that is text", play: (socket) => void socket.end(`${openHead}event: error\ndata: ${telling}\n\n`) },
  { name: "an error outside the framing", play: (socket) => void socket.end(`${openHead}error: ${telling}\n\n`) },
  { name: "an unterminated error", play: (socket) => void socket.end(`${openHead}data: ${JSON.stringify({ error })}`) },
  {
    name: "a finish reason",
    play: (socket) => void socket.end(openHead + event({ choices: [{ delta: {}, finish_reason: "error" }] })),
  },
  ...beforeOutput,
];

const secret = new RegExp([clientCanary, keyCanary, ownHeaderCanary, providerCanary].join("|"));
const unloggable = new RegExp(`${secret.source}|${bodyCanary}|${wordingCanary}`);

async function run(play: Play) {
  const upstream = await tcpProvider(decorated(play));
  const headers = { "x-auth-token": ownHeaderCanary };
  const made = {
    type: "openai",
    baseUrl: `${upstream.origin}/v1`,
    apiKey: keyCanary,
    headers,
  } as GatewayConfig["providers"][string];
  const gateway = await world({
    providers: { p: made, q: made },
    gate: { maxHeldBytes: 65_536, onOverflow: "fail" },
    timeouts: { idleTimeoutMs: 150 },
    exposeRouting: true,
  });
  const body = chatBody.replace('"hi"', `"${bodyCanary}"`);
  const answer = await gateway.ask({
    headers: clientHeaders,
    body,
    path: `/v1/chat/completions?key=${clientCanary}&x=${clientCanary}`,
  });
  await gateway.ended(1);
  return { answer, ...gateway, upstream };
}

function expectClean({ answer, logged, observed, upstream }: Awaited<ReturnType<typeof run>>): void {
  expect(upstream.requests.length).toBeGreaterThan(0);
  for (const { head, body } of upstream.requests) {
    expect(head).not.toContain(clientCanary);
    expect(head).toContain(`authorization: Bearer ${keyCanary}`);
    expect(body.toString()).toContain(bodyCanary);
  }
  expect(JSON.stringify(answer.headers)).not.toMatch(unloggable);
  expect(logged.length).toBeGreaterThan(0);
  expect(logged.join("\n")).not.toMatch(unloggable);
  expect(JSON.stringify(observed)).not.toMatch(unloggable);
}

describe("nothing gets to the other side where the provider answers with", () => {
  it.each(paths)("$name", async ({ play }) => {
    const outcome = await run(play);
    expectClean(outcome);
    expect(outcome.answer.body.toString()).not.toMatch(secret);
  });

  it.each(afterOutput)("$name, after output", async ({ play }) => {
    const outcome = await run(play);
    expectClean(outcome);
    expect(outcome.answer.body.toString()).not.toMatch(secret);
  });

  it("a healthy stream", async () => {
    expectClean(await run((socket) => void socket.write(healthyAnswer)));
  });

  it("an error event after output, which is passed on as it came", async () => {
    const outcome = await run((socket) => void socket.end(openHead + output + event({ error })));
    expectClean(outcome);
    expect(outcome.answer.body.toString()).toContain(wordingCanary);
  });
});

describe("the provider's wording", () => {
  it("reaches the client, without what the request was authorized with", async () => {
    const { answer } = await run(refusing(400, { error: { ...error, code: "bad" } }));
    expect(answer.status).toBe(400);
    expect(answer.body.toString()).toContain(wordingCanary);
    expect(answer.body.toString()).toContain("[redacted]");
  });
});

describe("a key that cannot be had", () => {
  it.each([
    ["is missing", () => undefined as unknown as string],
    ["throws what tells of it", () => Promise.reject(new Error(keyCanary))],
    ["holds what no header can", () => `${keyCanary}\r\nx: y`],
  ])("because it %s sends nothing, least of all the client's, and tells nothing", async (_name, apiKey) => {
    const upstream = await tcpProvider((socket) => void socket.write(healthyAnswer));
    const { ask, logged, observed } = await world({
      providers: { p: { type: "openai", baseUrl: `${upstream.origin}/v1`, apiKey } },
    });
    const answer = await ask({ headers: clientHeaders });
    expect(answer.status).toBe(502);
    expect(upstream.requests).toHaveLength(0);
    expect(
      answer.body.toString() + JSON.stringify(answer.headers) + logged.join("\n") + JSON.stringify(observed),
    ).not.toMatch(unloggable);
  });
});
