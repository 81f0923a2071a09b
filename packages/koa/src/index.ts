export { gatewayMiddleware } from "./middleware.js";
export type { GatewayMiddleware, GatewayMiddlewareOptions } from "./middleware.js";
export { metricsHandler } from "./metrics.js";
export type { MetricsSource } from "@first-chunk/core";
export type { Gateway, GatewayConfig, Identity } from "@first-chunk/core";
