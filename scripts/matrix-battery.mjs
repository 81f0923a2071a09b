/** The battery of the matrix, for the Node that runs it: one line of JSON a cell. Works on the built packages. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { bodyParser as koaBodyParser } from "@koa/bodyparser";
import compression from "compression";
import express5 from "express";
import express4 from "express4";
import Koa3 from "koa";
import Koa2 from "koa2";
import koaCompress from "koa-compress";
import {
  anthropicErrorFirst,
  anthropicHealthy,
  anthropicPreamble,
  anthropicTruncatedAfterText,
  chunk,
  end,
  hold,
  reset,
  sse,
  startScriptedProvider,
  until,
} from "../packages/core/dist/testing/index.js";
import { gatewayMiddleware as expressGateway } from "../packages/express/dist/index.js";
import { gatewayMiddleware as koaGateway } from "../packages/koa/dist/index.js";

const body =
  '{ "model":"fast", "stream":true, "max_tokens":10, "seed":12345678901234567890, "messages":[{"role":"user","content":"h\\u00e9"}] }';
const cookies = ["a=1; Path=/", "b=2; Path=/"];

function expressApp(framework, { parser, compressed }, config) {
  const app = framework();
  app.use((_req, res, next) => {
    res.setHeader("vary", "Origin");
    res.setHeader("set-cookie", cookies);
    next();
  });
  if (compressed) app.use(compression());
  if (parser === "json") app.use(framework.json());
  if (parser === "raw") app.use(framework.raw({ type: () => true }));
  const middleware = expressGateway(config);
  app.use(middleware);
  app.use((_req, res) => res.status(418).end("host"));
  return { listen: () => app.listen(0, "127.0.0.1"), gateway: middleware.gateway };
}

function koaApp(Framework, { parser, compressed }, config) {
  const app = new Framework();
  app.on("error", () => undefined);
  app.use(async (ctx, next) => {
    ctx.set("vary", "Origin");
    ctx.set("set-cookie", cookies);
    await next();
  });
  if (compressed) app.use(koaCompress());
  if (parser === "json") app.use(koaBodyParser());
  if (parser === "raw") {
    app.use(async (ctx, next) => {
      const parts = [];
      for await (const part of ctx.req) parts.push(part);
      ctx.request.body = Buffer.concat(parts);
      await next();
    });
  }
  const middleware = koaGateway(config);
  app.use(middleware);
  app.use((ctx) => {
    ctx.status = 418;
    ctx.body = "host";
  });
  return { listen: () => app.listen(0, "127.0.0.1"), gateway: middleware.gateway };
}

const frameworks = {
  "Express 4": (cell, config) => expressApp(express4, cell, config),
  "Express 5": (cell, config) => expressApp(express5, cell, config),
  "Koa 2": (cell, config) => koaApp(Koa2, cell, config),
  "Koa 3": (cell, config) => koaApp(Koa3, cell, config),
};

async function send(port, path = "/v1/messages") {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined);
  const lines = [
    `POST ${path} HTTP/1.1`,
    "host: x",
    "connection: close",
    "accept-encoding: gzip",
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
  ];
  socket.write(`${lines.join("\r\n")}\r\n\r\n${body}`);
  const client = { socket, text: "", closed: once(socket, "close"), seen: undefined };
  client.seen = async (text) => {
    while (!client.text.includes(text)) {
      assert.equal(socket.destroyed, false, `the connection ended before ${JSON.stringify(text)}`);
      await Promise.race([once(socket, "data"), client.closed]);
    }
  };
  socket.on("data", (data) => (client.text += data.toString("latin1")));
  return client;
}

async function answer(port, path) {
  const client = await send(port, path);
  await client.closed;
  const [head = ""] = client.text.split("\r\n\r\n", 1);
  const whole = /content-length: (\d+)/i.test(head) || client.text.endsWith("\r\n0\r\n\r\n");
  return { status: Number(head.split(" ")[1]), head, text: client.text, whole };
}

const text = (events) => events.join("");
/** Without the framing of the chunks. */
const dechunked = (all) =>
  all
    .slice(all.indexOf("\r\n\r\n") + 4)
    .replace(/(?:^|\r\n)[0-9a-f]+\r\n/g, "")
    .replace(/\r\n$/, "");

const checks = {
  async "a healthy stream, byte for byte"({ port, first, parser }) {
    first.use(sse(anthropicHealthy()));
    const got = await answer(port);
    assert.equal(got.status, 200);
    assert.equal(got.whole, true);
    assert.equal(dechunked(got.text), text(anthropicHealthy()));
    assert.match(got.head, /vary: Origin/i);
    assert.equal(got.head.match(/set-cookie: /gi)?.length, 2);
    assert.doesNotMatch(got.head, /content-encoding/i);
    const sent = first.requests.at(-1).body.toString();
    assert.deepEqual(JSON.parse(sent), { ...JSON.parse(body), model: "model-a" });
    // A parser that keeps the value alone has lost the digits; @koa/bodyparser keeps the text.
    if (parser !== "json") assert.match(sent, /12345678901234567890/);
  },
  async "each event when it comes"({ port, first }) {
    let go;
    const gone = new Promise((resolve) => (go = resolve));
    const [last, ...others] = anthropicHealthy().toReversed();
    first.use(sse(others.toReversed(), { after: [until(() => gone), chunk(last), end()] }));
    const client = await send(port);
    await client.seen(others[0].trim());
    go();
    await client.closed;
    assert.match(client.text, /message_stop/);
  },
  async "an error before output falls back"({ port, first, second }) {
    first.use(sse(anthropicErrorFirst()));
    second.use(sse(anthropicHealthy()));
    const got = await answer(port);
    assert.equal(dechunked(got.text), text(anthropicHealthy()));
  },
  async "an error everywhere is a status"({ port, first, second }) {
    first.use(sse(anthropicErrorFirst()));
    second.use(sse(anthropicErrorFirst()));
    const got = await answer(port);
    assert.equal(got.status, 503);
    assert.match(got.head, /content-type: application\/json/i);
    assert.match(got.text, /overloaded_error/);
  },
  async "a broken stream does not look whole"({ port, first }) {
    first.use(sse(anthropicTruncatedAfterText(), { after: [reset()] }));
    const got = await answer(port);
    assert.equal(got.status, 200);
    assert.equal(got.whole, false);
  },
  async "a client that leaves closes the provider's connection"({ port, first }) {
    for (const events of [anthropicPreamble(), anthropicTruncatedAfterText()]) {
      first.use(sse(events, { after: [hold()] }));
      const index = first.requests.length;
      const client = await send(port);
      const request = await first.request(index);
      if (events.length > anthropicPreamble().length) await client.seen("text_delta");
      client.socket.destroy();
      assert.equal((await request.closed).byClient, true);
    }
  },
  async "other paths are the host's"({ port }) {
    assert.equal((await answer(port, "/orders")).status, 418);
  },
};

async function runCell(name, make, cell) {
  const failures = [];
  const startedAt = performance.now();
  const first = await startScriptedProvider([]);
  const second = await startScriptedProvider([]);
  const target = (provider) => ({ type: "anthropic", baseUrl: provider.url, apiKey: "key" });
  const config = {
    providers: { first: target(first), second: target(second) },
    models: { fast: { targets: [{ target: "first/model-a" }, { target: "second/model-b" }] } },
    cooldown: false,
    retry: { attempts: 0 },
  };
  const { listen, gateway } = make(cell, config);
  const server = listen();
  await once(server, "listening");
  const { port } = server.address();
  for (const [what, check] of Object.entries(checks)) {
    try {
      await withLimit(check({ port, first, second, ...cell }));
    } catch (error) {
      failures.push(`${what}: ${String(error.message).slice(0, 500)}`);
    }
  }
  await gateway.close({ graceMs: 0 });
  server.closeAllConnections();
  server.close();
  await Promise.all([first.close(), second.close()]);
  console.log(JSON.stringify({ node: process.version, cell: name, failures, ms: performance.now() - startedAt }));
  return failures.length;
}

async function withLimit(promise) {
  let timer;
  const limit = new Promise(
    (_resolve, reject) => (timer = setTimeout(() => reject(new Error("no end after 10 s")), 10_000)),
  );
  try {
    await Promise.race([promise, limit]);
  } finally {
    clearTimeout(timer);
  }
}

const unhandled = [];
process.on("unhandledRejection", (reason) => unhandled.push(reason));
for (const [framework, make] of Object.entries(frameworks)) {
  for (const parser of ["none", "json", "raw"]) {
    for (const compressed of [false, true]) {
      await runCell(`${framework}, parser ${parser}${compressed ? ", compression" : ""}`, make, { parser, compressed });
    }
  }
}
if (unhandled.length > 0) {
  console.error(unhandled[0]);
  process.exitCode = 1;
}
