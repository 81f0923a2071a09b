/** From a request of `node:http` to one of the gateway, or to the answer that refuses it. */

import type { IncomingMessage } from "node:http";
import { setImmediate } from "node:timers/promises";
import type { Clock } from "../clock.js";
import type { Failure } from "../errors.js";
import type { FailedEvent } from "../events.js";
import type { GatewayRequest, Peer } from "../request.js";
import { readIdentity } from "./identify.js";
import type { IdentifyResult } from "./identify.js";
import { readRequestBody } from "./read-body.js";
import type { ParsedSource } from "./read-body.js";
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
  readonly signal: AbortSignal;
  /** Where body parsers leave what they have read. */
  readonly source: ParsedSource;
  readonly identify: () => IdentifyResult | Promise<IdentifyResult>;
  readonly clock: Clock;
}

export type PreparedRequest = { readonly request: GatewayRequest } | { readonly refused: FailedEvent };

/**
 * The caller is identified before its body is read, so that a stranger cannot make the gateway hold one.
 *
 * @throws what `identify` throws
 */
export async function prepareRequest(gateway: ServedGateway, incoming: Incoming): Promise<PreparedRequest> {
  const { req, route, url, mounted, signal, source, clock } = incoming;
  const refuse = async (failure: Failure): Promise<PreparedRequest> => {
    // In the next turn of the event loop the body is complete if it came in one packet with the head, and the refusal
    // does not have to close the connection.
    if (!req.complete) await setImmediate();
    return { refused: gateway.refuse(route, failure) };
  };
  const misframed = checkFraming(req);
  if (misframed !== undefined) return refuse(misframed);
  const refused = gateway.refusal?.();
  if (refused !== undefined) return refuse(refused);
  const who = readIdentity(await incoming.identify());
  if ("failure" in who) return refuse(who.failure);
  const read = await readRequestBody(req, { limit: gateway.limits.maxRequestBytes, source, clock });
  if ("failure" in read) return refuse(read.failure);
  const method = req.method ?? "GET";
  const peer = peerOf(req);
  return {
    request: { method, url, mounted, headers: req.headers, body: read.body, identity: who.identity, peer, signal },
  };
}

function peerOf({ socket }: IncomingMessage): Peer | undefined {
  const { remoteAddress: address, remotePort: port, localAddress: serverAddress, localPort: serverPort } = socket;
  if (address === undefined || port === undefined || serverAddress === undefined || serverPort === undefined)
    return undefined;
  return { address, port, serverAddress, serverPort };
}
