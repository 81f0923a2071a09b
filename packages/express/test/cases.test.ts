import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { gatewayMiddleware } from "@first-chunk/express";
import express from "express";
import { httpCases } from "../../core/test/http-cases.js";

httpCases("Express", async (config) => {
  const app = express();
  const middleware = gatewayMiddleware(config);
  app.use(middleware);
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await middleware.gateway.close();
    },
  };
});
