export { gatewayMiddleware } from "./middleware.js";
export type { GatewayMiddleware, GatewayMiddlewareOptions } from "./middleware.js";
