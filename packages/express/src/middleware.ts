/** The gateway as Express middleware, for Express 4 and 5. */

import type { IncomingMessage, ServerResponse } from "node:http";
import { createGateway, createNodeHandler, isGateway } from "@first-chunk/core";
import type { AdapterOptions, Gateway, GatewayConfig } from "@first-chunk/core";

/** `identify(req)` says who calls: `{ subject?, metadata? }`, `{ reject: 401 | 403 }`, or undefined. May be async. */
export type GatewayMiddlewareOptions<Req extends IncomingMessage = IncomingMessage> = AdapterOptions<Req>;

/**
 * An Express `RequestHandler`, typed on `node:http` so that it fits the types of both majors. Answers nothing but the
 * gateway's own APIs; everything else is `next()`.
 */
export interface GatewayMiddleware<
  Req extends IncomingMessage = IncomingMessage,
  Res extends ServerResponse = ServerResponse,
> {
  (req: Req, res: Res, next: (error?: unknown) => void): void;
  /** The gateway behind it, to share it with another app or to close it. */
  readonly gateway: Gateway;
}

/**
 * Errors of the gateway are answered in the client's own protocol. `next(error)` is called only for what `identify`
 * throws and for a bug of the gateway, and never once a response has begun.
 *
 * @param configOrGateway a config, or a gateway from `createGateway` that several apps may share
 * @throws ConfigError at once, with the path of what is wrong
 */
export function gatewayMiddleware<
  Req extends IncomingMessage = IncomingMessage,
  Res extends ServerResponse = ServerResponse,
>(configOrGateway: GatewayConfig | Gateway, options: GatewayMiddlewareOptions<Req> = {}): GatewayMiddleware<Req, Res> {
  const gateway = isGateway(configOrGateway) ? configOrGateway : createGateway(configOrGateway);
  const handle = createNodeHandler<Req, Res>(gateway, { ...options, isMounted });
  // Of exactly three parameters and without a result: Express counts the former, and Express 5 awaits the latter.
  const middleware = (req: Req, res: Res, next: (error?: unknown) => void): void => handle(req, res, next);
  return Object.assign(middleware, { gateway });
}

/** Express has taken the mount path off `req.url` and keeps it here. */
function isMounted(req: IncomingMessage & { readonly baseUrl?: unknown }): boolean {
  return typeof req.baseUrl === "string" && req.baseUrl !== "";
}
