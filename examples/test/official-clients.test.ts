import { once } from "node:events";
import { createServer } from "node:http";
import type { RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import type { Gateway } from "@first-chunk/core";
import type { AdapterHarness, AdapterSetup, RunningApp } from "@first-chunk/core/testing";
import { gatewayMiddleware as expressGateway } from "@first-chunk/express";
import { gatewayMiddleware as koaGateway } from "@first-chunk/koa";
import express from "express";
import Koa from "koa";
import { sdkContract } from "../../packages/core/test/testing/sdk-contract.js";

interface App {
  readonly gateway: Gateway;
  readonly listener: RequestListener;
}

async function serve({ gateway, listener }: App, appErrors: unknown[]): Promise<RunningApp> {
  const server = createServer(listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    appErrors,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
      await gateway.close();
    },
  };
}

const expressHarness: AdapterHarness = {
  name: "Express 5",
  start: ({ config, options = {} }: AdapterSetup) => {
    const { identify } = options;
    const middleware = expressGateway(config, identify && { identify: (req) => identify(req.headers) });
    return serve({ gateway: middleware.gateway, listener: express().use(middleware) }, []);
  },
};

const koaHarness: AdapterHarness = {
  name: "Koa 3",
  start: ({ config, options = {} }: AdapterSetup) => {
    const { identify } = options;
    const middleware = koaGateway(config, identify && { identify: (ctx) => identify(ctx.req.headers) });
    const appErrors: unknown[] = [];
    const app = new Koa().use(middleware).on("error", (error) => appErrors.push(error));
    const handle = app.callback();
    return serve({ gateway: middleware.gateway, listener: (req, res) => void handle(req, res) }, appErrors);
  },
  documentedAppError: (error) => (error as { code?: unknown }).code === "ERR_STREAM_PREMATURE_CLOSE",
};

sdkContract(expressHarness);
sdkContract(koaHarness);
