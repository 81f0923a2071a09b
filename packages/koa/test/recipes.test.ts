/** The gateway next to the middleware that hosts use: the recipes of docs/middleware.md. */

import { once } from "node:events";
import { createServer } from "node:http";
import { connect as connectHttp2, createServer as createHttp2Server } from "node:http2";
import type { ClientHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { bodyParser } from "@koa/bodyparser";
import cors from "@koa/cors";
import type { GatewayConfig } from "@first-chunk/core";
import {
  chatErrorFirst,
  chatHealthy,
  chatTruncatedAfterText,
  chunk,
  end,
  hold,
  reset,
  sse,
  startScriptedProvider,
  until,
} from "@first-chunk/core/testing";
import type { ScriptedProvider, ScriptSource } from "@first-chunk/core/testing";
import { gatewayMiddleware } from "@first-chunk/koa";
import Koa from "koa";
import Koa2 from "koa2";
import compress from "koa-compress";
import session from "koa-session";
import { describe, expect, it, onTestFinished } from "vitest";
import { ask, headerOf, RawClient } from "../../core/src/testing/contract/raw-client.js";
import type { RawRequest } from "../../core/src/testing/contract/raw-client.js";
import { serving } from "../../core/test/http/serving.js";

async function setting(
  script: ScriptSource,
): Promise<{ readonly config: GatewayConfig; readonly provider: ScriptedProvider }> {
  const provider = await startScriptedProvider(script);
  onTestFinished(() => provider.close());
  const local = { type: "openai-compatible", baseUrl: `${provider.url}/v1`, requireTerminal: true } as const;
  return { config: { providers: { local }, retry: { attempts: 0 } }, provider };
}

const body = JSON.stringify({ model: "local/m", messages: [], stream: true });
const chat = (more: Partial<RawRequest> = {}): RawRequest => ({
  path: "/v1/chat/completions",
  body,
  ...more,
  headers: { "content-type": "application/json", ...more.headers },
});
const healthy = chatHealthy().join("");

describe.each([
  ["Koa 2", Koa2 as unknown as typeof Koa],
  ["Koa 3", Koa],
])("%s", (_name, Framework) => {
  const appWith = (...middleware: Koa.Middleware[]): Koa => {
    const app = new Framework();
    // Koa 3 reports clients that leave.
    app.on("error", () => undefined);
    app.keys = ["test"];
    for (const one of middleware) app.use(one);
    return app;
  };
  const urlOf = (app: Koa): Promise<string> => serving(createServer(app.callback()));

  it("koa-compress: lets a stream through event by event, and compresses what is the host's", async () => {
    let go = (): void => undefined;
    const gone = new Promise<void>((resolve) => (go = resolve));
    const [last = "", ...others] = chatHealthy().toReversed();
    const { config } = await setting(sse(others.toReversed(), { after: [until(() => gone), chunk(last), end()] }));
    const app = appWith(compress({ threshold: 0 }), gatewayMiddleware(config), (ctx) => {
      ctx.type = "text";
      ctx.body = "x".repeat(5000);
    });
    const url = await urlOf(app);
    const headers = { "accept-encoding": "gzip" };
    const client = await RawClient.send(url, chat({ headers }));
    await client.waitFor(others[0]?.trim() ?? "");
    go();
    expect((await client.answer()).body.toString()).toBe(healthy);
    expect(headerOf(await ask(url, { path: "/text", method: "GET", headers }), "content-encoding")).toBe("gzip");
  });

  it("@koa/cors: answers the preflight, and its headers stand on streams and failures", async () => {
    for (const events of [chatHealthy(), chatErrorFirst()]) {
      const { config } = await setting(sse(events));
      const url = await urlOf(appWith(cors({ origin: "https://app.example" }), gatewayMiddleware(config)));
      const headers = { origin: "https://app.example" };
      const preflight = await ask(url, {
        path: "/v1/chat/completions",
        method: "OPTIONS",
        headers: { ...headers, "access-control-request-method": "POST" },
      });
      expect(preflight.status).toBe(204);
      const answer = await ask(url, chat({ headers }));
      expect(headerOf(answer, "access-control-allow-origin")).toBe("https://app.example");
      expect(headerOf(answer, "vary")).toMatch(/origin/i);
    }
  });

  it("koa-session: the session is read by identify, and its cookie is set on a stream", async () => {
    const subjects: unknown[] = [];
    const { config } = await setting(sse(chatHealthy()));
    const observers = [
      {
        onEvent: (event: { type: string; subject?: unknown }) =>
          void (event.type === "request-start" && subjects.push(event.subject)),
      },
    ];
    const app = appWith();
    app.use(session(app as never));
    app.use(async (ctx, next) => {
      const state = ctx["session"] as unknown as { visits?: number };
      state.visits = (state.visits ?? 0) + 1;
      await next();
    });
    const identify = (ctx: Koa.Context) => ({
      subject: `visit ${(ctx["session"] as unknown as { visits: number }).visits}`,
    });
    app.use(gatewayMiddleware({ ...config, observers }, { identify: identify }));
    const url = await urlOf(app);
    const first = await ask(url, chat());
    const cookies = first.headers.filter(([name]) => name === "set-cookie").map(([, value]) => value.split(";")[0]);
    expect(cookies.join()).toMatch(/koa\.sess/);
    expect(first.body.toString()).toBe(healthy);
    await ask(url, chat({ headers: { cookie: cookies.join("; ") } }));
    expect(subjects).toEqual(["visit 1", "visit 2"]);
  });

  describe("@koa/bodyparser", () => {
    it("before the gateway: its own limit and its errors are the host's, and no provider is called", async () => {
      const { config, provider } = await setting(sse(chatHealthy()));
      const url = await urlOf(appWith(bodyParser(), gatewayMiddleware(config)));
      const large = JSON.stringify({ model: "local/m", messages: [], stream: true, user: "x".repeat(5_000_000) });
      expect((await ask(url, chat({ body: large }))).status).toBe(413);
      expect((await ask(url, chat({ body: "{nonsense" }))).status).toBe(400);
      expect(provider.requests).toHaveLength(0);
    });

    it("before the gateway: it keeps the text, which reaches the provider digit by digit", async () => {
      const { config, provider } = await setting(sse(chatHealthy()));
      const url = await urlOf(appWith(bodyParser(), gatewayMiddleware(config)));
      await ask(url, chat({ body: '{"model":"local/m", "seed":12345678901234567890, "stream":true}' }));
      expect(provider.requests[0]?.body.toString()).toBe('{"model":"m", "seed":12345678901234567890, "stream":true}');
    });

    it("after the gateway: 5 MB reach the provider", async () => {
      const { config, provider } = await setting(sse(chatHealthy()));
      const url = await urlOf(appWith(gatewayMiddleware(config), bodyParser()));
      const large = JSON.stringify({ model: "local/m", messages: [], stream: true, user: "x".repeat(5_000_000) });
      expect((await ask(url, chat({ body: large }))).body.toString()).toBe(healthy);
      expect(provider.requests[0]?.body.length).toBeGreaterThan(5_000_000);
    });
  });

  it("a logger that waits for the response's close sees what the client got", async () => {
    const log: string[] = [];
    let wake = (): void => undefined;
    const scripts = [sse(chatHealthy()), sse(chatTruncatedAfterText(), { after: [reset()] }), sse(chatErrorFirst())];
    const { config } = await setting((_request, index) => scripts[index] ?? []);
    // `await next()` is over at release: how long an answer took, and whether it came whole, only the close tells.
    const logger: Koa.Middleware = async (ctx, next) => {
      ctx.res.once("close", () => {
        log.push(`${ctx.res.statusCode} ${ctx.res.writableFinished ? "whole" : "broken"}`);
        wake();
      });
      await next();
    };
    const url = await urlOf(appWith(logger, gatewayMiddleware(config)));
    for (let round = 0; round < 3; round += 1) await ask(url, chat());
    while (log.length < 3) await new Promise<void>((resolve) => (wake = resolve));
    expect(log.slice(0, 2)).toEqual(["200 whole", "200 broken"]);
    expect(log[2]).toMatch(/^5\d\d whole$/);
  });

  describe("HTTP/2", () => {
    async function connection(
      script: ScriptSource,
    ): Promise<{ readonly http2: ClientHttp2Session; readonly provider: ScriptedProvider }> {
      const { config, provider } = await setting(script);
      const server = createHttp2Server(appWith(gatewayMiddleware(config)).callback());
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      const client = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
      onTestFinished(() => {
        client.destroy();
        server.close();
      });
      return { http2: client, provider };
    }
    const request = { ":method": "POST", ":path": "/v1/chat/completions", "content-type": "application/json" };

    it("a stream passes, many at a time on one connection", async () => {
      const { http2 } = await connection(sse(chatHealthy()));
      const texts = Array.from({ length: 20 }, async () => {
        const stream = http2.request(request);
        stream.end(body);
        let text = "";
        stream.setEncoding("utf8").on("data", (data: string) => (text += data));
        await once(stream, "end");
        return text;
      });
      expect(new Set(await Promise.all(texts))).toEqual(new Set([healthy]));
    });

    it("a broken stream ends in an error, and a client that cancels closes the provider's connection", async () => {
      const scripts = [
        sse(chatTruncatedAfterText(), { after: [reset()] }),
        sse(chatTruncatedAfterText(), { after: [hold()] }),
      ];
      const { http2, provider } = await connection((_request, index) => scripts[index] ?? []);
      const broken = http2.request(request);
      broken.end(body);
      broken.resume();
      await expect(once(broken, "end")).rejects.toThrow(/INTERNAL_ERROR/);
      const cancelled = http2.request(request);
      cancelled.end(body);
      await once(cancelled, "data");
      cancelled.close();
      expect((await (await provider.request(1)).closed).byClient).toBe(true);
    });
  });
});
