/** Puts the gateway's answer on a Koa context. Koa sends it once the middleware before this one is done. */

import { Readable } from "node:stream";
import { drainUnreadBody, hasUnreadBody } from "@first-chunk/core";
import type { ClientConnection, Clock, FailedEvent, ReleasedEvent } from "@first-chunk/core";
import type { GatewayContext } from "./context.js";
import { ReleasedStream } from "./released-stream.js";

export interface RespondContext {
  readonly ctx: GatewayContext & { compress?: unknown };
  readonly client: ClientConnection;
  readonly clock: Clock;
  /** Of the gateway, in ms; used where the event names none. */
  readonly writeStallTimeoutMs: number;
}

export function respondReleased(event: ReleasedEvent, context: RespondContext): void {
  if (!canAnswer(context)) return event.body.cancel();
  const { ctx, client, clock } = context;
  const { body, writeStallTimeoutMs = context.writeStallTimeoutMs } = event;
  const stream = new ReleasedStream({ body, res: ctx.res, client, writeStallTimeoutMs, clock });
  try {
    setHead(ctx, event);
    // koa-compress would keep each event until its buffer is full.
    ctx.compress = false;
    ctx.body = stream;
  } catch (error) {
    stream.destroy();
    throw error;
  }
  client.answer();
}

export function respondFailed(event: FailedEvent, context: RespondContext): void {
  if (!canAnswer(context)) return;
  const { ctx, client, clock } = context;
  setHead(ctx, event);
  if (hasUnreadBody(ctx.req)) {
    ctx.set("connection", "close");
    ctx.set("content-length", String(Buffer.byteLength(event.body)));
    ctx.body = lingering(event.body, ctx, clock);
  } else {
    ctx.body = event.body;
  }
  client.answer();
}

/**
 * False for a client that is gone, and for a response that somebody else has begun. The latter is the host's mistake (a
 * middleware that does not await `next()`), so it is reported. As an event, not thrown: nobody awaits us in that case,
 * and the process would die of an unhandled rejection.
 */
export function canAnswer({ ctx, client }: RespondContext): boolean {
  if (ctx.headerSent || ctx.res.writableEnded) {
    ctx.app.emit("error", new ResponseTakenError(), ctx);
    return false;
  }
  if (!client.gone && ctx.writable) return true;
  // For loggers before us; nobody gets it.
  ctx.status = 499;
  return false;
}

export class ResponseTakenError extends Error {
  override readonly name: string = "ResponseTakenError";
  readonly code: "ERR_FIRST_CHUNK_RESPONSE_TAKEN" = "ERR_FIRST_CHUNK_RESPONSE_TAKEN";
  /** Koa's mark for errors that it cannot answer. */
  readonly headerSent: true = true;

  constructor() {
    super("The response was sent before the gateway had an answer. Does a middleware before it not await next()?");
  }
}

function setHead(ctx: GatewayContext, { status, headers }: Pick<ReleasedEvent, "status" | "headers">): void {
  // Status and headers before the body: Koa fills in what is missing when the body is set.
  ctx.status = status;
  const { response } = ctx;
  for (const name of Object.keys(headers)) {
    // HTTP/2 has no such header.
    if (name === "connection" && ctx.req.httpVersionMajor >= 2) continue;
    const value = headers[name] as string | readonly string[];
    response.set(name, typeof value === "string" ? value : [...value]);
  }
}

/** Sends its text at once and ends when the unread rest of the request has been dropped. */
function lingering(text: string, ctx: GatewayContext, clock: Clock): Readable {
  const stream = new Readable({ read: () => undefined });
  stream.push(text);
  void drainUnreadBody(ctx.req, clock).then(() => stream.push(null));
  return stream;
}
