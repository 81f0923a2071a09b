/** Writes the gateway's answer to a `node:http` response (HTTP/1, or HTTP/2 through its compatibility API). */

import { ServerResponse, type IncomingMessage, type OutgoingHttpHeaders } from "node:http";
import type { Clock } from "../clock.js";
import type { FailedEvent, ReleasedEvent } from "../events.js";
import { BodyPump } from "./body-pump.js";
import type { ClientConnection } from "./client-connection.js";
import { flush, ResponseOutlet } from "./response-outlet.js";
import { drainUnreadBody, hasUnreadBody } from "./unread-body.js";

export interface RespondContext {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly client: ClientConnection;
  readonly clock: Clock;
  /** Of the gateway, in ms; used where the event names none. */
  readonly writeStallTimeoutMs: number;
}

/**
 * The one place where a response to a client is committed. The head goes out with the first bytes, in one packet.
 * A response that is gone or that somebody else has begun is left alone, and the upstream is aborted.
 */
export function respondReleased(event: ReleasedEvent, context: RespondContext): void {
  const { res, client, clock } = context;
  if (client.gone || client.taken) return event.body.cancel();
  const pump = new BodyPump({
    body: event.body,
    outlet: new ResponseOutlet(res),
    res,
    writeStallTimeoutMs: event.writeStallTimeoutMs ?? context.writeStallTimeoutMs,
    clock,
  });
  try {
    writeReleasedHead(event, context);
  } catch (error) {
    pump.close();
    throw error;
  }
  client.answer();
  client.onClose(pump);
  pump.start();
}

/** Sends a failure as a whole. Nothing is sent to a client that is gone, or over a response that has begun. */
export function respondFailed(event: FailedEvent, context: RespondContext): void {
  const { req, res, client, clock } = context;
  if (client.gone || client.taken) return;
  const bytes = Buffer.from(event.body);
  const length = { "content-length": String(bytes.byteLength) };
  if (!hasUnreadBody(req)) {
    writeHead({ ...event, headers: { ...event.headers, ...length } }, context);
    client.answer();
    res.end(bytes);
    return;
  }
  writeHead({ ...event, headers: { ...event.headers, ...length, connection: "close" } }, context);
  client.answer();
  res.write(bytes);
  flush(res);
  void drainUnreadBody(req, clock).then(() => res.end());
}

/** A response whose `writeHead` was replaced gets the record: several packages that do so break on pairs. */
function writeReleasedHead(event: ReleasedEvent, context: RespondContext): void {
  const { res } = context;
  const { status, headerPairs } = event;
  if (headerPairs === undefined || res.writeHead !== ServerResponse.prototype.writeHead)
    return writeHead(event, context);
  if (res.getHeaderNames().length === 0) {
    res.writeHead(status, headerPairs as string[]);
    flatten(res);
    return;
  }
  // Beside headers of the host Node would set each of ours twice.
  for (let at = 0; at < headerPairs.length; at += 2)
    res.setHeader(headerPairs[at] as string, headerPairs[at + 1] as string | string[]);
  res.writeHead(status);
  flatten(res);
}

/**
 * Node keeps the head that it wrote as a tree of some 70 pieces, for as long as the response lasts. Reading a character
 * makes V8 join them: more than 1 KiB less for each open stream. The field is Node's own; without it nothing is done.
 */
function flatten(res: ServerResponse & { readonly _header?: unknown }): void {
  if (typeof res._header === "string") _lastRead = res._header.charCodeAt(0);
}

/** Kept, so that the reading is not optimized away. */
let _lastRead = 0;

/** Headers that the host set before are kept: `writeHead` replaces only those it names. */
function writeHead({ status, headers }: Pick<ReleasedEvent, "status" | "headers">, { req, res }: RespondContext): void {
  if (req.httpVersionMajor >= 2 && "connection" in headers) {
    // HTTP/2 has no such header.
    const { connection: _, ...rest } = headers;
    res.writeHead(status, rest as OutgoingHttpHeaders);
    return;
  }
  res.writeHead(status, headers as OutgoingHttpHeaders);
}
