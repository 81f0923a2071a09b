/** Puts the gateway's answer on a Koa context. Koa sends it once the middleware before this one is done. */

import type { ServerResponse } from "node:http";
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
    ctx.status = event.status;
    setReleasedHead(ctx.res, event);
    // koa-compress would keep each event until its buffer is full.
    ctx.compress = false;
    ctx.body = stream;
    Object.defineProperty(ctx, "respond", sendsItself);
  } catch (error) {
    stream.destroy();
    throw error;
  }
  client.answer();
}

/** A response without a body, whatever stands in `ctx.body`. */
const bodiless: ReadonlySet<number> = new Set([204, 205, 304]);

/**
 * `ctx.respond === false` tells Koa that the response is sent by somebody else, and Koa asks only when all middleware is
 * done. In place of the `pipeline()` of Koa 3, which costs more than all that the gateway does for a request. Where the
 * body was replaced or wrapped, or there is to be none, Koa responds as ever.
 */
const sendsItself: PropertyDescriptor & ThisType<GatewayContext> = {
  configurable: true,
  get() {
    const { body } = this;
    const sends =
      body instanceof ReleasedStream && this.writable && this.method !== "HEAD" && !bodiless.has(this.status);
    return !(sends && body.send());
  },
  set(value: unknown) {
    Object.defineProperty(this, "respond", { value, configurable: true, enumerable: true, writable: true });
  },
};

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

function setReleasedHead(res: ServerResponse, event: ReleasedEvent): void {
  // The record is made when it is asked for.
  const pairs = event.headerPairs ?? Object.entries(event.headers).flat(1);
  for (let at = 0; at < pairs.length; at += 2) res.setHeader(pairs[at] as string, pairs[at + 1] as string | string[]);
}

function setHead(ctx: GatewayContext, { status, headers }: Pick<ReleasedEvent, "status" | "headers">): void {
  // Status and headers before the body: Koa fills in what is missing when the body is set.
  ctx.status = status;
  for (const name of Object.keys(headers)) {
    // HTTP/2 has no such header.
    if (name === "connection" && ctx.req.httpVersionMajor >= 2) continue;
    ctx.res.setHeader(name, headers[name] as string | string[]);
  }
}

/** Sends its text at once and ends when the unread rest of the request has been dropped. */
function lingering(text: string, ctx: GatewayContext, clock: Clock): Readable {
  const stream = new Readable({ read: () => undefined });
  stream.push(text);
  void drainUnreadBody(ctx.req, clock).then(() => stream.push(null));
  return stream;
}
