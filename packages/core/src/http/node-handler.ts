/** The gateway on plain `node:http`, and under every framework that hands over its requests and responses. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../clock.js";
import { systemClock } from "../clock.js";
import type { FailedEvent, ReleasedEvent } from "../events.js";
import { checkAdapterOptions, locate } from "./adapter-options.js";
import type { AdapterOptions } from "./adapter-options.js";
import { ClientConnection } from "./client-connection.js";
import type { ParsedSource } from "./read-body.js";
import { internalFailure } from "./refusal.js";
import { respondFailed, respondReleased } from "./respond.js";
import type { RespondContext } from "./respond.js";
import { serveRequest } from "./serve-request.js";
import type { Responder } from "./serve-request.js";
import type { ServedGateway } from "./served-gateway.js";

export interface NodeHandlerOptions<Req> extends AdapterOptions<Req> {
  /** Whether the framework has stripped a mount path from `req.url`. Default: never. */
  readonly isMounted?: ((req: Req) => boolean) | undefined;
  /** For tests. Default: the system's. */
  readonly clock?: Clock | undefined;
}

/**
 * @param next called untouched for requests that are not the gateway's (default: a bare 404), and with an error when
 * `identify` throws or the gateway has a bug, before anything is sent (default: a 500 in the client's protocol)
 */
export type NodeHandler<Req extends IncomingMessage, Res extends ServerResponse> = (
  req: Req,
  res: Res,
  next?: (error?: unknown) => void,
) => void;

/**
 * A request handler for `http.createServer`, Connect and their like.
 *
 * @throws ConfigError for wrong options
 */
export function createNodeHandler<
  Req extends IncomingMessage = IncomingMessage,
  Res extends ServerResponse = ServerResponse,
>(gateway: ServedGateway, options: NodeHandlerOptions<Req> = {}): NodeHandler<Req, Res> {
  const { isMounted = () => false, clock = systemClock, ...rest } = options;
  const { identify, prefix } = checkAdapterOptions<Req>(rest);
  return (req, res, next) => {
    try {
      const place = locate(req.url ?? "/", prefix, isMounted(req));
      const route = place && gateway.match(req.method ?? "GET", place.url, place.mounted);
      if (place === undefined || route === undefined) return next === undefined ? answerBare(res, 404) : next();
      const { url, mounted } = place;
      const signal = new ClientConnection(res);
      // Body parsers for `node:http` and Express put their results on the request.
      const source = req as ParsedSource;
      const who = identify && (() => identify(req));
      const incoming = { req, route, url, mounted, signal, source, identify: who, clock };
      serveRequest(gateway, incoming, new NodeResponder(gateway, route, req, res, signal, clock, next));
    } catch (error) {
      if (next === undefined) answerBare(res, 500);
      else next(error);
    }
  };
}

class NodeResponder implements Responder, RespondContext {
  readonly #gateway: ServedGateway;
  readonly #route: object;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly client: ClientConnection;
  readonly clock: Clock;
  readonly #next: ((error?: unknown) => void) | undefined;

  constructor(
    gateway: ServedGateway,
    route: object,
    req: IncomingMessage,
    res: ServerResponse,
    client: ClientConnection,
    clock: Clock,
    next: ((error?: unknown) => void) | undefined,
  ) {
    this.#gateway = gateway;
    this.#route = route;
    this.req = req;
    this.res = res;
    this.client = client;
    this.clock = clock;
    this.#next = next;
  }

  get writeStallTimeoutMs(): number {
    return this.#gateway.timeouts.writeStallTimeoutMs;
  }

  /** The client may have left, or been answered, while the host's middleware was at work. */
  canAnswer(): boolean {
    return !this.client.gone && !this.client.taken;
  }

  answer(event: ReleasedEvent | FailedEvent): void {
    if (event.type === "released") respondReleased(event, this);
    else respondFailed(event, this);
  }

  fail(error: unknown): void {
    if (this.client.answered) return void (this.res.writableEnded || this.res.destroy());
    if (!this.canAnswer()) return;
    if (this.#next === undefined) answerBug(this.#gateway, this.#route, this, error);
    else this.#next(error);
  }

  leave(): void {
    // Nobody waits.
  }
}

function answerBug(gateway: ServedGateway, route: object, context: RespondContext, error: unknown): void {
  try {
    respondFailed(gateway.refuse(route, internalFailure(error)), context);
  } catch {
    context.res.destroy();
  }
}

function answerBare(res: ServerResponse, status: 404 | 500): void {
  res.writeHead(status, { "content-type": "text/plain" }).end(status === 404 ? "Not found\n" : "Internal error\n");
}
