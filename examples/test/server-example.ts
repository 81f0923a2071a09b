/** What both server examples must do. */

import { Anthropic } from "@anthropic-ai/sdk";
import {
  anthropicHealthy,
  chatErrorFirst,
  chatHealthy,
  chunk,
  end,
  sse,
  startScriptedProvider,
  until,
} from "@first-chunk/core/testing";
import type { ScriptedProvider, ScriptSource } from "@first-chunk/core/testing";
import { OpenAI } from "openai";
import { afterEach, describe, expect, it } from "vitest";
import { Child } from "./child.js";

const ask = { model: "chat", messages: [{ role: "user" as const, content: "Say something." }] };

/** @param file below `examples/dist` */
export function serverExample(file: string): void {
  describe(`the example ${file}`, () => {
    const world = worldOf(file);
    serving(world);
    stopping(world);
    usage(file);
  });
}

type Start = (script: ScriptSource) => Promise<{ url: string; provider: ScriptedProvider; child: Child }>;

function worldOf(file: string): Start {
  let provider: ScriptedProvider | undefined;
  let child: Child | undefined;
  afterEach(async () => {
    await child?.kill();
    await provider?.close();
  });

  return async (script) => {
    provider = await startScriptedProvider(script);
    child = new Child(file, {
      PORT: "0",
      CLIENT_TOKEN: "token-of-the-client",
      ANTHROPIC_API_KEY: "key-at-anthropic",
      OPENAI_API_KEY: "key-at-openai",
      ANTHROPIC_URL: provider.url,
      OPENAI_URL: `${provider.url}/v1`,
    });
    const [, url = ""] = await child.printed(/listening on (\S+)/);
    return { url, provider, child };
  };
}

function openai(url: string, apiKey: string): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 });
}

function serving(start: Start): void {
  it("falls back for a client with the right token, and keeps that token from the provider", async () => {
    const script: ScriptSource = (_request, index) =>
      sse(index === 0 ? chatErrorFirst() : chatHealthy({ text: "one two" }));
    const world = await start(script);
    expect(await openai(world.url, "token-of-the-client").chat.completions.stream(ask).finalContent()).toBe("one two");
    const [first, second] = world.provider.requests;
    expect(first?.headers.authorization).toBe("Bearer key-at-openai");
    expect(JSON.parse(String(first?.body)).model).toBe("gpt-5.1");
    expect(JSON.parse(String(second?.body)).model).toBe("gpt-5-mini");
  });

  it("serves Anthropic's client", async () => {
    const { url } = await start(sse(anthropicHealthy({ text: "one two" })));
    const client = new Anthropic({ apiKey: "token-of-the-client", baseURL: url, maxRetries: 0 });
    const stream = client.messages.stream({ ...ask, model: "claude-x", max_tokens: 10 });
    expect(await stream.finalText()).toBe("one two");
  });

  it("rejects a client with a wrong token, in the client's protocol", async () => {
    const { url, provider: asked } = await start([]);
    await expect(openai(url, "wrong").chat.completions.create(ask)).rejects.toThrow(OpenAI.AuthenticationError);
    const client = new Anthropic({ apiKey: "wrong", baseURL: url, maxRetries: 0 });
    const create = client.messages.create({ ...ask, model: "claude-x", max_tokens: 10 });
    await expect(create).rejects.toThrow(Anthropic.AuthenticationError);
    expect(asked.requests).toHaveLength(0);
  });

  it("still has the routes of its own", async () => {
    const { url } = await start([]);
    expect(await (await fetch(`${url}/health`)).json()).toEqual({ ok: true });
  });
}

function stopping(start: Start): void {
  it("lets an open stream end after SIGTERM, and exits", async () => {
    let go = (): void => {};
    const opened = new Promise<void>((resolve) => (go = resolve));
    const [first = "", second = "", ...rest] = chatHealthy({ text: "one two" });
    const world = await start(sse([first, second], { after: [until(() => opened), ...rest.map(chunk), end()] }));
    const stream = await openai(world.url, "token-of-the-client").chat.completions.create({ ...ask, stream: true });
    let text = "";
    for await (const part of stream) {
      text += part.choices[0]?.delta.content ?? "";
      if (text !== "one") continue;
      world.child.signal("SIGTERM");
      await world.child.printed(/closing/);
      go();
    }
    expect(text).toBe("one two");
    expect(await world.child.exit).toBe(0);
  });
}

function usage(file: string): void {
  it("says what is missing, and exits with 2", async () => {
    const child = new Child(file, { PORT: "8080", CLIENT_TOKEN: "t", OPENAI_API_KEY: "" });
    expect(await child.exit).toBe(2);
    expect(child.stderr).toContain("Missing: ANTHROPIC_API_KEY, OPENAI_API_KEY");
    expect(child.stderr).toContain(`Usage: node examples/dist/${file}`);
  });

  it("refuses a port that is none", async () => {
    const child = new Child(file, { PORT: "http", CLIENT_TOKEN: "t", OPENAI_API_KEY: "k", ANTHROPIC_API_KEY: "k" });
    expect(await child.exit).toBe(2);
    expect(child.stderr).toContain('not "http"');
  });

  it("exits with 1 when the port is taken", async () => {
    const taken = await startScriptedProvider([]);
    const env = { PORT: new URL(taken.url).port, CLIENT_TOKEN: "t", OPENAI_API_KEY: "k", ANTHROPIC_API_KEY: "k" };
    const second = new Child(file, env);
    expect(await second.exit).toBe(1);
    expect(second.stderr).toContain("EADDRINUSE");
    await taken.close();
  });
}
