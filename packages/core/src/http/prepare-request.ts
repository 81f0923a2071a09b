/** From a request of `node:http` to one of the gateway, or to the answer that refuses it. */

import type { IncomingMessage } from "node:http";
import { setImmediate } from "node:timers/promises";
import type { Clock } from "../clock.js";
import type { Failure } from "../errors.js";
import type { FailedEvent } from "../events.js";
import type { ClientSignal, GatewayRequest, Identity, Peer } from "../request.js";
import { readIdentity } from "./identify.js";
import type { IdentifyResult } from "./identify.js";
import { readRequestBody } from "./read-body.js";
import type { BodyOutcome, ParsedSource } from "./read-body.js";
import { checkFraming } from "./request-head.js";
import type { ServedGateway } from "./served-gateway.js";

export interface Incoming {
  readonly req: IncomingMessage;
  /** What `gateway.match` gave. */
  readonly route: object;
  /** Path and query below the mount point. */
  readonly url: string;
  readonly mounted: boolean;
  /** Aborts when the client leaves. */
  readonly signal: ClientSignal;
  /** Where body parsers leave what they have read. */
  readonly source: ParsedSource;
  /** Default: nobody in particular calls. */
  readonly identify?: (() => IdentifyResult | Promise<IdentifyResult>) | undefined;
  readonly clock: Clock;
}

export type PreparedRequest = { readonly request: GatewayRequest } | { readonly refused: FailedEvent };

/**
 * The caller is identified before its body is read, so that a stranger cannot make the gateway hold one.
 *
 * @returns a promise only where something has to be waited for
 * @throws what `identify` throws
 */
export function prepareRequest(gateway: ServedGateway, incoming: Incoming): PreparedRequest | Promise<PreparedRequest> {
  const refused = checkFraming(incoming.req) ?? gateway.refusal?.();
  if (refused !== undefined) return refuse(gateway, incoming, refused);
  const who = incoming.identify?.();
  return isPromiseLike(who) ? whenIdentified(gateway, incoming, who) : readAs(gateway, incoming, who);
}

async function whenIdentified(
  gateway: ServedGateway,
  incoming: Incoming,
  identifying: PromiseLike<IdentifyResult>,
): Promise<PreparedRequest> {
  return readAs(gateway, incoming, await identifying);
}

function readAs(
  gateway: ServedGateway,
  incoming: Incoming,
  result: IdentifyResult,
): PreparedRequest | Promise<PreparedRequest> {
  const who = readIdentity(result);
  if ("failure" in who) return refuse(gateway, incoming, who.failure);
  const { req, source, clock } = incoming;
  const read = readRequestBody(req, { limit: gateway.limits.maxRequestBytes, source, clock });
  return read instanceof Promise
    ? whenRead(gateway, incoming, who.identity, read)
    : toRequest(gateway, incoming, who.identity, read);
}

async function whenRead(
  gateway: ServedGateway,
  incoming: Incoming,
  identity: Identity | undefined,
  reading: Promise<BodyOutcome>,
): Promise<PreparedRequest> {
  return toRequest(gateway, incoming, identity, await reading);
}

function toRequest(
  gateway: ServedGateway,
  incoming: Incoming,
  identity: Identity | undefined,
  read: BodyOutcome,
): PreparedRequest | Promise<PreparedRequest> {
  if ("failure" in read) return refuse(gateway, incoming, read.failure);
  const { req, url, mounted, signal } = incoming;
  const { method = "GET", headers } = req;
  return { request: { method, url, mounted, headers, body: read.body, identity, peer: peerOf(req), signal } };
}

async function refuse(gateway: ServedGateway, { req, route }: Incoming, failure: Failure): Promise<PreparedRequest> {
  // In the next turn of the event loop the body is complete if it came in one packet with the head, and the refusal
  // does not have to close the connection.
  if (!req.complete) await setImmediate();
  return { refused: gateway.refuse(route, failure) };
}

function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === "object" && value !== null && "then" in value;
}

function peerOf({ socket }: IncomingMessage): Peer | undefined {
  const { remoteAddress: address, remotePort: port, localAddress: serverAddress, localPort: serverPort } = socket;
  if (address === undefined || port === undefined || serverAddress === undefined || serverPort === undefined)
    return undefined;
  return { address, port, serverAddress, serverPort };
}
