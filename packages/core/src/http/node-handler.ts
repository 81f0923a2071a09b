/** The gateway on plain `node:http`, and under every framework that hands over its requests and responses. */

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "../clock.js";
import { systemClock } from "../clock.js";
import { checkAdapterOptions, locate } from "./adapter-options.js";
import type { AdapterOptions, Place } from "./adapter-options.js";
import { answerTo } from "./answer.js";
import { ClientConnection } from "./client-connection.js";
import { prepareRequest } from "./prepare-request.js";
import type { Incoming } from "./prepare-request.js";
import type { ParsedSource } from "./read-body.js";
import { internalFailure } from "./refusal.js";
import { respondFailed, respondReleased } from "./respond.js";
import type { RespondContext } from "./respond.js";
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
    let found: Found | undefined;
    try {
      found = findRoute(gateway, req, locate(req.url ?? "/", prefix, isMounted(req)));
    } catch (error) {
      return next === undefined ? answerBare(res, 500) : next(error);
    }
    if (found === undefined) return next === undefined ? answerBare(res, 404) : next();
    const { route } = found;
    const client = new ClientConnection(res);
    const context = { req, res, client, clock, writeStallTimeoutMs: gateway.timeouts.writeStallTimeoutMs };
    serve(gateway, found, context, identify && (() => identify(req))).catch((error: unknown) => {
      if (client.answered) return void (res.writableEnded || res.destroy());
      if (client.gone || client.taken) return;
      if (next === undefined) answerBug(gateway, route, context, error);
      else next(error);
    });
  };
}

interface Found extends Place {
  readonly route: object;
}

function findRoute(gateway: ServedGateway, req: IncomingMessage, place: Place | undefined): Found | undefined {
  const route = place && gateway.match(req.method ?? "GET", place.url, place.mounted);
  return place && route && { url: place.url, mounted: place.mounted, route };
}

async function serve(
  gateway: ServedGateway,
  found: Found,
  context: RespondContext,
  identify: Incoming["identify"],
): Promise<void> {
  const { req, client, clock } = context;
  // The client left while the host's middleware was at work, or was answered by it.
  if (client.gone || client.taken) return;
  // Body parsers for `node:http` and Express put their results here.
  const source = req as ParsedSource;
  const { route, url, mounted } = found;
  const preparing = prepareRequest(gateway, { req, route, url, mounted, signal: client, source, identify, clock });
  const prepared = preparing instanceof Promise ? await preparing : preparing;
  if ("refused" in prepared) return respondFailed(prepared.refused, context);
  if (client.gone) return;
  const answer = await answerTo(gateway, prepared.request, route);
  if (answer?.type === "released") respondReleased(answer, context);
  else if (answer !== undefined) respondFailed(answer, context);
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
