/** The gateway in an Express and in a Koa application, on loopback. */

import { once } from "node:events";
import { createServer } from "node:http";
import type { RequestListener, Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Gateway, GatewayConfig, ObserverEvent } from "@first-chunk/core";
import { gatewayMiddleware as expressGateway } from "@first-chunk/express";
import { gatewayMiddleware as koaGateway } from "@first-chunk/koa";
import express from "express";
import Koa from "koa";

export interface RunningGateway {
  readonly name: "Express 5" | "Koa 3";
  readonly url: string;
  /** Calls the listener for what the gateway's observers are told; replaces the one before. */
  observe(listener: (event: ObserverEvent) => void): void;
  close(): Promise<void>;
}

/** Two gateways of one configuration, with nothing shared between them. */
export function startGateways(config: GatewayConfig): Promise<RunningGateway[]> {
  return Promise.all([
    start("Express 5", config, (observed) => {
      const middleware = expressGateway(observed);
      return { gateway: middleware.gateway, listener: express().use(middleware) };
    }),
    start("Koa 3", config, (observed) => {
      const middleware = koaGateway(observed);
      const handle = new Koa().use(middleware).callback();
      return { gateway: middleware.gateway, listener: (req, res) => void handle(req, res) };
    }),
  ]);
}

async function start(
  name: RunningGateway["name"],
  config: GatewayConfig,
  build: (config: GatewayConfig) => { gateway: Gateway; listener: RequestListener },
): Promise<RunningGateway> {
  let listen: (event: ObserverEvent) => void = () => {};
  const { gateway, listener } = build({ ...config, observers: [{ onEvent: (event) => listen(event) }] });
  const server = createServer(listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    name,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    observe: (next) => {
      listen = next;
    },
    close: async () => {
      await Promise.all([gateway.close(), closed(server)]);
    },
  };
}

function closed(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    // The SDKs keep their connections alive; no request is open at this point.
    server.closeAllConnections();
  });
}
