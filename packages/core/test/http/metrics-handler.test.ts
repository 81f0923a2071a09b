import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Registry } from "prom-client";
import { afterEach, describe, expect, it } from "vitest";
import { metricsHandler, type MetricsSource } from "../../src/http/metrics-handler.js";
import { prometheusObserver } from "../../src/observability/prometheus.js";
import { parseMetrics } from "../observability/prometheus-text.js";

let server: Server | undefined;
afterEach(() => server?.close());

async function scrape(source: MetricsSource): Promise<Response> {
  server = createServer(metricsHandler(source)).listen(0, "127.0.0.1");
  await once(server, "listening");
  return fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`);
}

describe("the metrics handler", () => {
  it("answers with the metrics of an observer, or of its registry", async () => {
    const observer = prometheusObserver({ register: new Registry() });
    for (const source of [observer, observer.register]) {
      const response = await scrape(source);
      expect(response.status).toBe(200);
      expect(response.headers.get("content-type")).toBe(observer.register.contentType);
      expect(parseMetrics(await response.text()).has("first_chunk_requests_total")).toBe(true);
      server?.close();
    }
  });

  it("answers 500 without a reason when a collector fails", async () => {
    const response = await scrape({ contentType: "text/plain", metrics: () => Promise.reject(new Error("secret")) });
    expect(response.status).toBe(500);
    expect(await response.text()).not.toContain("secret");
  });
});
