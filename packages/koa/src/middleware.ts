/** The gateway as Koa middleware, for Koa 2 and 3. */

import {
  checkAdapterOptions,
  ClientConnection,
  createGateway,
  isGateway,
  locate,
  serveRequest,
  systemClock,
} from "@first-chunk/core";
import type {
  AdapterOptions,
  FailedEvent,
  Gateway,
  GatewayConfig,
  ParsedSource,
  ReleasedEvent,
  Responder,
} from "@first-chunk/core";
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
    const incoming = { req, route, url, mounted, signal: client, source, identify: who, clock: systemClock };
    const context = { ctx, client, clock: systemClock, writeStallTimeoutMs };
    return new Promise<void>((resolve, reject) => {
      serveRequest(gateway, incoming, new KoaResponder(context, resolve, reject));
    });
  };
  return Object.assign(middleware, { gateway });
}

/** Koa goes on when the answer is on the context. */
class KoaResponder implements Responder {
  readonly #context: RespondContext;
  readonly #done: () => void;
  readonly fail: (error: unknown) => void;

  constructor(context: RespondContext, done: () => void, fail: (error: unknown) => void) {
    this.#context = context;
    this.#done = done;
    this.fail = fail;
  }

  /** The client may have left, or been answered, while the host's middleware was at work. */
  canAnswer(): boolean {
    return canAnswer(this.#context);
  }

  answer(event: ReleasedEvent | FailedEvent): void {
    if (event.type === "released") respondReleased(event, this.#context);
    else respondFailed(event, this.#context);
    this.#done();
  }

  leave(): void {
    this.#done();
  }
}
