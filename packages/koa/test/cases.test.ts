import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { gatewayMiddleware } from "@first-chunk/koa";
import Koa from "koa";
import { httpCases } from "../../core/test/http-cases.js";

httpCases("Koa", async (config) => {
  const app = new Koa();
  // Koa reports each client that leaves.
  app.on("error", () => undefined);
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
