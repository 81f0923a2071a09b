import { once } from "node:events";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setImmediate } from "node:timers/promises";
import { adapterContract } from "@first-chunk/core/testing";
import type { AdapterHarness, AdapterSetup, RunningApp } from "@first-chunk/core/testing";
import { gatewayMiddleware } from "@first-chunk/express";
import compression from "compression";
import express from "express";
import express4 from "express4";
import { describe, it } from "vitest";

const frameworks = [
  { name: "Express 4", framework: express4 as unknown as typeof express },
  { name: "Express 5", framework: express },
];

function harness(name: string, framework: typeof express): AdapterHarness {
  return { name, start: (setup) => start(framework, setup) };
}

async function start(framework: typeof express, setup: AdapterSetup): Promise<RunningApp> {
  const app = framework();
  const appErrors: unknown[] = [];
  const gateway = useGateway(app, framework, setup);
  app.use(async (req, res) => {
    let bytes = 0;
    if (!req.readableEnded) for await (const chunk of req) bytes += (chunk as Buffer).length;
    res.setHeader("x-host", "yes").setHeader("x-host-body-bytes", bytes);
    res.send(`${req.method} ${req.originalUrl}`);
  });
  app.use((error: unknown, _req: unknown, res: ServerResponse, _next: unknown) => {
    appErrors.push(error);
    const { status = 500 } = error as { status?: number };
    if (res.headersSent) res.destroy();
    else res.writeHead(status).end("host error");
  });
  const server = await listen(app);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    appErrors,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
      if (!("handle" in setup.config)) await gateway.close();
    },
  };
}

function useGateway(app: ReturnType<typeof express>, framework: typeof express, setup: AdapterSetup) {
  const { config, options = {}, earlierHeaders, earlierWait, bodyParser = "none", mount } = setup;
  if (earlierHeaders !== undefined) {
    app.use((_req, res, next) => {
      for (const [field, value] of Object.entries(earlierHeaders)) res.setHeader(field, value);
      next();
    });
  }
  if (earlierWait !== undefined) {
    app.use((_req, res, next) => {
      void earlierWait(once(res, "close").then(() => undefined))
        .then(() => setImmediate())
        .then(() => next());
    });
  }
  if (setup.compression === true) app.use(compression());
  if (bodyParser === "json") app.use(framework.json());
  if (bodyParser === "raw") app.use(framework.raw({ type: () => true }));
  if (bodyParser === "json-keeping-raw") {
    app.use(framework.json({ verify: (req, _res, rawBody) => void Object.assign(req, { rawBody }) }));
  }
  const { identify, ...rest } = options;
  const middleware = gatewayMiddleware(config, {
    ...rest,
    identify: identify && ((req: IncomingMessage) => identify(req.headers)),
  });
  if (mount === undefined) app.use(middleware);
  else app.use(mount, middleware);
  return middleware.gateway;
}

async function listen(app: ReturnType<typeof express>): Promise<Server> {
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

for (const { name, framework } of frameworks) adapterContract(harness(name, framework), { describe, it });
