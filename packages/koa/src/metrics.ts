/** Answers a Prometheus scrape in a Koa app. */

import { renderMetrics } from "@first-chunk/core";
import type { MetricsSource } from "@first-chunk/core";
import type { ParameterizedContext } from "koa";

/** For a router: `router.get("/metrics", metricsHandler(observer))`. Has no authentication of its own. */
export function metricsHandler(source: MetricsSource): (ctx: ParameterizedContext) => Promise<void> {
  return async (ctx) => {
    const { status, contentType, text } = await renderMetrics(source);
    ctx.status = status;
    ctx.set("cache-control", "no-store");
    ctx.type = contentType;
    ctx.body = text;
  };
}
