/** Answers a Prometheus scrape. Knows a registry by its shape, so that nothing of prom-client is loaded here. */

import type { IncomingMessage, ServerResponse } from "node:http";

/** A prom-client registry, or a `prometheusObserver`, which has one. */
export type MetricsSource = MetricsRegistry | { readonly register: MetricsRegistry };

export interface MetricsRegistry {
  /** The metrics in the text format. */
  metrics(): Promise<string>;
  readonly contentType: string;
}

export interface RenderedMetrics {
  readonly status: 200 | 500;
  readonly contentType: string;
  readonly text: string;
}

/** Never rejects: a collector that throws is a 500, without its message. */
export async function renderMetrics(source: MetricsSource): Promise<RenderedMetrics> {
  try {
    const registry = "register" in source ? source.register : source;
    return { status: 200, contentType: registry.contentType, text: await registry.metrics() };
  } catch {
    return { status: 500, contentType: "text/plain; charset=utf-8", text: "The metrics could not be collected\n" };
  }
}

/** For `node:http`, Connect and Express: `app.get("/metrics", metricsHandler(observer))`. Has no authentication of its own. */
export function metricsHandler(source: MetricsSource): (req: IncomingMessage, res: ServerResponse) => void {
  return (_req, res) => {
    void renderMetrics(source).then(({ status, contentType, text }) => {
      if (res.headersSent || res.destroyed) return;
      res.writeHead(status, { "content-type": contentType, "cache-control": "no-store" }).end(text);
    });
  };
}
