/** The gateway as Koa middleware, for Koa 2 and 3. */

import {
  answerTo,
  checkAdapterOptions,
  ClientConnection,
  createGateway,
  isGateway,
  locate,
  prepareRequest,
  systemClock,
} from "@first-chunk/core";
import type { AdapterOptions, Gateway, GatewayConfig, Incoming, ParsedSource } from "@first-chunk/core";
import type { DefaultContext, DefaultState, Next, ParameterizedContext } from "koa";
import { isMounted } from "./context.js";
import { canAnswer, respondFailed, respondReleased } from "./respond.js";
import type { RespondContext } from "./respond.js";

/** `identify(ctx)` says who calls: `{ subject?, metadata? }`, `{ reject: 401 | 403 }`, or undefined. May be async. */
export type GatewayMiddlewareOptions<StateT = DefaultState, ContextT = DefaultContext> = AdapterOptions<
  ParameterizedContext<StateT, ContextT>
>;

/** A Koa `Middleware`. Answers nothing but the gateway's own APIs; everything else is `next()`. */
export interface GatewayMiddleware<StateT = DefaultState, ContextT = DefaultContext> {
  (ctx: ParameterizedContext<StateT, ContextT>, next: Next): Promise<unknown>;
  /** The gateway behind it, to share it with another app or to close it. */
  readonly gateway: Gateway;
}

/**
 * Sets `ctx.status`, headers and `ctx.body`, and returns at release: what earlier middleware does after `await next()`
 * still reaches the response. Errors of the gateway are answered in the client's own protocol; only what `identify`
 * throws and a bug of the gateway is thrown.
 *
 * @param configOrGateway a config, or a gateway from `createGateway` that several apps may share
 * @throws ConfigError at once, with the path of what is wrong
 */
export function gatewayMiddleware<StateT = DefaultState, ContextT = DefaultContext>(
  configOrGateway: GatewayConfig | Gateway,
  options: GatewayMiddlewareOptions<StateT, ContextT> = {},
): GatewayMiddleware<StateT, ContextT> {
  const { identify, prefix } = checkAdapterOptions(options);
  const gateway = isGateway(configOrGateway) ? configOrGateway : createGateway(configOrGateway);
  const middleware = async (ctx: ParameterizedContext<StateT, ContextT>, next: Next): Promise<unknown> => {
    const place = locate(ctx.url, prefix, isMounted(ctx));
    const route = place && gateway.match(ctx.method, place.url, place.mounted);
    if (place === undefined || route === undefined) return next();
    const client = new ClientConnection(ctx.res);
    const { writeStallTimeoutMs } = gateway.timeouts;
    const { req } = ctx;
    // @koa/bodyparser and its like put their results there; the types of Koa know of them only where one is installed.
    const source = ctx.request as ParsedSource;
    const who = identify && (() => identify(ctx));
    const { url, mounted } = place;
    await serve(
      gateway,
      { req, route, url, mounted, signal: client, source, identify: who, clock: systemClock },
      { ctx, client, clock: systemClock, writeStallTimeoutMs },
    );
    return undefined;
  };
  return Object.assign(middleware, { gateway });
}

async function serve(gateway: Gateway, incoming: Incoming, context: RespondContext): Promise<void> {
  // The client may have left, or been answered, while the host's middleware was at work.
  if (!canAnswer(context)) return;
  const preparing = prepareRequest(gateway, incoming);
  const prepared = preparing instanceof Promise ? await preparing : preparing;
  if ("refused" in prepared) return respondFailed(prepared.refused, context);
  if (!canAnswer(context)) return;
  const answer = await answerTo(gateway, prepared.request, incoming.route);
  if (answer === undefined) canAnswer(context);
  else if (answer.type === "released") respondReleased(answer, context);
  else respondFailed(answer, context);
}
