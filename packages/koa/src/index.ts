export { gatewayMiddleware } from "./middleware.js";
export type { GatewayMiddleware, GatewayMiddlewareOptions } from "./middleware.js";
export type { GatewayContext } from "./context.js";
