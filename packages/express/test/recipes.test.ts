/** The gateway next to the middleware that hosts use: the recipes of docs/middleware.md. */

import { once } from "node:events";
import { createServer } from "node:http";
import { connect as connectHttp2, createSecureServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { Writable } from "node:stream";
import { connect as connectTls } from "node:tls";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createGateway, createNodeHandler } from "@first-chunk/core";
import type { GatewayConfig } from "@first-chunk/core";
import {
  chatErrorFirst,
  chatHealthy,
  chatTruncatedAfterText,
  chunk,
  end,
  flood,
  hold,
  reset,
  sse,
  startScriptedProvider,
  until,
} from "@first-chunk/core/testing";
import type { ScriptSource } from "@first-chunk/core/testing";
import { gatewayMiddleware } from "@first-chunk/express";
import compression from "compression";
import cors from "cors";
import express from "express";
import session from "express-session";
import express4 from "express4";
import morgan from "morgan";
import { pinoHttp } from "pino-http";
import { describe, expect, it, onTestFinished } from "vitest";
import { ask, headerOf, RawClient } from "../../core/src/testing/contract/raw-client.js";
import type { RawRequest } from "../../core/src/testing/contract/raw-client.js";
import { selfSigned } from "../../core/test/fixtures/self-signed.js";
import { serving } from "../../core/test/http/serving.js";

async function configFor(
  script: ScriptSource,
): Promise<GatewayConfig & { readonly provider: Awaited<ReturnType<typeof startScriptedProvider>> }> {
  const provider = await startScriptedProvider(script);
  onTestFinished(() => provider.close());
  const config = {
    providers: { local: { type: "openai-compatible", baseUrl: `${provider.url}/v1`, requireTerminal: true } },
    retry: { attempts: 0 },
  } as const;
  return Object.defineProperty(config, "provider", { value: provider, enumerable: false }) as never;
}

const body = JSON.stringify({ model: "local/m", messages: [], stream: true });
const chat = (more: Partial<RawRequest> = {}): RawRequest => ({
  path: "/v1/chat/completions",
  body,
  ...more,
  headers: { "content-type": "application/json", ...more.headers },
});
const healthy = chatHealthy().join("");

/** Lines as a logger writes them. */
function lines(): { readonly stream: Writable; readonly all: string[]; next(index: number): Promise<string> } {
  const all: string[] = [];
  let wake = (): void => undefined;
  const stream = new Writable({
    write: (data: Buffer, _encoding, done) => {
      all.push(...data.toString().trimEnd().split("\n"));
      wake();
      done();
    },
  });
  const next = async (index: number): Promise<string> => {
    while (all.length <= index) await new Promise<void>((resolve) => (wake = resolve));
    return all[index] ?? "";
  };
  return { stream, all, next };
}

describe.each([
  ["Express 4", express4 as unknown as typeof express],
  ["Express 5", express],
])("%s", (_name, framework) => {
  describe("compression", () => {
    it("lets a stream through event by event, and compresses what is the host's", async () => {
      let go = (): void => undefined;
      const gone = new Promise<void>((resolve) => (go = resolve));
      const [last = "", ...others] = chatHealthy().toReversed();
      const config = await configFor(sse(others.toReversed(), { after: [until(() => gone), chunk(last), end()] }));
      const app = framework().use(compression({ threshold: 0 }), gatewayMiddleware(config));
      app.get("/text", (_req, res) => void res.type("text").send("x".repeat(5000)));
      const url = await serving(createServer(app));
      const headers = { "accept-encoding": "gzip" };
      const client = await RawClient.send(url, chat({ headers }));
      await client.waitFor(others[0]?.trim() ?? "");
      go();
      expect((await client.answer()).body.toString()).toBe(healthy);
      expect(headerOf(await ask(url, { path: "/text", method: "GET", headers }), "content-encoding")).toBe("gzip");
    });

    it("resumes for a slow client, without a warning of leaked listeners", async () => {
      const warnings: Error[] = [];
      const onWarning = (warning: Error): void => void warnings.push(warning);
      process.on("warning", onWarning);
      onTestFinished(() => void process.off("warning", onWarning));
      const after = [flood(`: ${"x".repeat(65_536)}\n\n`, 300), chunk(chatHealthy().at(-1) ?? ""), end()];
      const config = await configFor(sse(chatHealthy().slice(0, -1), { after }));
      const url = await serving(createServer(framework().use(compression(), gatewayMiddleware(config))));
      const client = await RawClient.send(url, chat({ headers: { "accept-encoding": "gzip" } }));
      for (let round = 0; round < 40 && !client.socket.destroyed; round += 1) {
        client.socket.pause();
        await new Promise((resolve) => setTimeout(resolve, 2));
        client.socket.resume();
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      const answer = await client.answer();
      expect(answer.complete).toBe(true);
      expect(answer.body.length).toBeGreaterThan(300 * 65_536);
      expect(warnings).toEqual([]);
    });
  });

  it("cors: answers the preflight, and its headers stand on streams and failures", async () => {
    for (const events of [chatHealthy(), chatErrorFirst()]) {
      const app = framework().use(
        cors({ origin: "https://app.example", credentials: true }),
        gatewayMiddleware(await configFor(sse(events))),
      );
      const url = await serving(createServer(app));
      const headers = { origin: "https://app.example" };
      const preflight = await ask(url, {
        path: "/v1/chat/completions",
        method: "OPTIONS",
        headers: { ...headers, "access-control-request-method": "POST" },
      });
      expect(preflight.status).toBe(204);
      const answer = await ask(url, chat({ headers }));
      expect(headerOf(answer, "access-control-allow-origin")).toBe("https://app.example");
      expect(headerOf(answer, "access-control-allow-credentials")).toBe("true");
      expect(headerOf(answer, "vary")).toMatch(/origin/i);
    }
  });

  it("express-session: the session is read by identify, and its cookie is set on a stream", async () => {
    const subjects: unknown[] = [];
    const config = await configFor(sse(chatHealthy()));
    const observers = [
      {
        onEvent: (event: { type: string; subject?: unknown }) =>
          void (event.type === "request-start" && subjects.push(event.subject)),
      },
    ];
    const app = framework();
    app.use(session({ secret: "test", resave: false, saveUninitialized: true }));
    app.use((req, _res, next) => {
      const state = req.session as unknown as { visits?: number };
      state.visits = (state.visits ?? 0) + 1;
      next();
    });
    const identify = (req: IncomingMessage) => ({
      subject: `visit ${(req as unknown as { session: { visits: number } }).session.visits}`,
    });
    app.use(gatewayMiddleware({ ...config, observers }, { identify }));
    const url = await serving(createServer(app));
    const first = await ask(url, chat());
    const cookie = headerOf(first, "set-cookie")?.split(";")[0] ?? "";
    expect(cookie).toMatch(/^connect\.sid=/);
    expect(first.body.toString()).toBe(healthy);
    await ask(url, chat({ headers: { cookie } }));
    expect(subjects).toEqual(["visit 1", "visit 2"]);
  });

  describe("body parsers", () => {
    it("before the gateway: their own limit is the host's error, and no provider is called", async () => {
      const config = await configFor(sse(chatHealthy()));
      const app = framework().use(framework.json(), gatewayMiddleware(config));
      app.use(
        (error: { status: number; type: string }, _req: unknown, res: ServerResponse, _next: unknown) =>
          void res.writeHead(error.status).end(error.type),
      );
      const url = await serving(createServer(app));
      const large = JSON.stringify({ model: "local/m", messages: [], stream: true, user: "x".repeat(5_000_000) });
      const answer = await ask(url, chat({ body: large }));
      expect([answer.status, answer.body.toString()]).toEqual([413, "entity.too.large"]);
      expect(config.provider.requests).toHaveLength(0);
    });

    it("after the gateway: 5 MB reach the provider, and the host still parses its own", async () => {
      const config = await configFor(sse(chatHealthy()));
      const app = framework().use(gatewayMiddleware(config), framework.json());
      app.post("/orders", (req, res) => void res.json(req.body));
      const url = await serving(createServer(app));
      const large = JSON.stringify({ model: "local/m", messages: [], stream: true, user: "x".repeat(5_000_000) });
      expect((await ask(url, chat({ body: large }))).body.toString()).toBe(healthy);
      expect(config.provider.requests[0]?.body.length).toBeGreaterThan(5_000_000);
      expect((await ask(url, chat({ path: "/orders", body: '{"a":1}' }))).body.toString()).toBe('{"a":1}');
    });

    it("an empty object that a parser has read is a body", async () => {
      const config = await configFor(sse(chatHealthy()));
      const url = await serving(createServer(framework().use(framework.json(), gatewayMiddleware(config))));
      const answer = await ask(url, chat({ body: "{}" }));
      expect(answer.status).toBe(400);
      expect(answer.body.toString()).toContain("model");
    });
  });

  it("morgan: one line a request, with the status that the client got", async () => {
    const log = lines();
    const app = framework();
    app.use(morgan(":method :url :status", { stream: { write: (line) => void log.stream.write(line) } }));
    const script: ScriptSource = (_request, index) => (index === 0 ? sse(chatHealthy()) : sse(chatErrorFirst()));
    app.use(gatewayMiddleware(await configFor(script)));
    const url = await serving(createServer(app));
    await ask(url, chat());
    const failed = await ask(url, chat());
    expect(await log.next(1)).toBe(`POST /v1/chat/completions ${failed.status}`);
    expect(log.all[0]).toBe("POST /v1/chat/completions 200");
  });

  it("pino-http: a stream completes; one that breaks, and a client that leaves, are aborted requests", async () => {
    const log = lines();
    const scripts = [
      sse(chatHealthy()),
      sse(chatTruncatedAfterText(), { after: [reset()] }),
      sse(chatTruncatedAfterText(), { after: [hold()] }),
    ];
    const app = framework().use(
      pinoHttp({}, log.stream),
      gatewayMiddleware(await configFor((_request, index) => scripts[index] ?? [])),
    );
    const url = await serving(createServer(app));
    await ask(url, chat());
    expect(await log.next(0)).toContain("request completed");
    await ask(url, chat());
    expect(await log.next(1)).toContain("request aborted");
    const client = await RawClient.send(url, chat());
    await client.waitFor("200 OK");
    client.leave();
    expect(await log.next(2)).toContain("request aborted");
  });

  it("a handler after the gateway is never reached for what is the gateway's, whatever becomes of it", async () => {
    let reached = 0;
    const app = framework().use(
      gatewayMiddleware(
        await configFor((_request, index) => (index === 0 ? sse(chatHealthy()) : sse(chatErrorFirst()))),
      ),
    );
    app.use((_req, res) => {
      reached += 1;
      res.end();
    });
    const url = await serving(createServer(app));
    await ask(url, chat());
    await ask(url, chat());
    await ask(url, chat({ body: "nonsense" }));
    const left = await RawClient.send(url, chat());
    left.leave();
    await left.closed;
    expect(reached).toBe(0);
  });
});

describe("HTTP/2", () => {
  it("the gateway answers HTTP/2 by itself, next to an Express app that is left with HTTP/1", async () => {
    const gateway = createGateway(await configFor(sse(chatHealthy())));
    onTestFinished(() => gateway.close({ graceMs: 0 }));
    const app = express();
    app.get("/host", (_req, res) => void res.send("host"));
    const handle = createNodeHandler(gateway);
    const server = createSecureServer({ ...selfSigned, allowHTTP1: true }, (request, response) => {
      // The types of HTTP/2 know nothing of its being compatible.
      const req: IncomingMessage = request as never;
      const res: ServerResponse = response as never;
      handle(req, res, () => {
        if (req.httpVersionMajor < 2) app(req, res);
        else res.writeHead(404).end();
      });
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const client = connectHttp2(`https://127.0.0.1:${port}`, { ca: selfSigned.cert });
    onTestFinished(() => {
      client.destroy();
      server.close();
    });
    const stream = client.request({
      ":method": "POST",
      ":path": "/v1/chat/completions",
      "content-type": "application/json",
    });
    stream.end(body);
    let text = "";
    stream.setEncoding("utf8").on("data", (data: string) => (text += data));
    await once(stream, "end");
    expect(text).toBe(healthy);
    const tls = connectTls({ port, host: "127.0.0.1", ca: selfSigned.cert, ALPNProtocols: ["http/1.1"] });
    tls.write("GET /host HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    let answer = "";
    tls.on("data", (data: Buffer) => (answer += data.toString()));
    await once(tls, "close");
    expect(answer).toMatch(/^HTTP\/1\.1 200[^]*host$/);
  });
});
