import { once } from "node:events";
import type { AddressInfo } from "node:net";
import Koa from "koa";
import { expect, it } from "vitest";
import { metricsHandler } from "@first-chunk/koa";

async function scrape(metrics: () => Promise<string>): Promise<Response> {
  const app = new Koa();
  app.use(metricsHandler({ register: { contentType: "text/plain; version=0.0.4; charset=utf-8", metrics } }));
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`);
  server.close();
  return response;
}

it("a Koa app answers a scrape", async () => {
  const response = await scrape(() => Promise.resolve("a_total 1\n"));
  expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect(await response.text()).toBe("a_total 1\n");
});

it("a Koa app answers 500 when a collector fails", async () => {
  expect((await scrape(() => Promise.reject(new Error("x")))).status).toBe(500);
});
