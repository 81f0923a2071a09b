/** Listening, and leaving without cutting a stream off. */

import type { RequestListener } from "node:http";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Gateway } from "@first-chunk/core";

/** Serves on 127.0.0.1 until SIGTERM or SIGINT. */
export function serve(listener: RequestListener, gateway: Gateway, port: number): void {
  const server = createServer(listener);
  server.on("error", (error) => {
    console.error(`Cannot listen on port ${port}: ${error.message}`);
    process.exit(1);
  });
  server.listen(port, "127.0.0.1", () => {
    console.log(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  });

  let leaving = false;
  const leave = async (): Promise<void> => {
    if (leaving) return;
    leaving = true;
    console.log("closing");
    // Order matters: take no new connection, let open streams end, then end the connections that are kept alive.
    const closed = new Promise((resolve) => server.close(resolve));
    await gateway.close();
    server.closeIdleConnections();
    await closed;
    console.log("closed");
  };
  process.on("SIGTERM", () => void leave());
  process.on("SIGINT", () => void leave());
}
