/** The connections to providers by their two ends: a request that comes over one of them was sent by ourselves. */

import type { Socket } from "node:net";
import type { Peer } from "../request.js";

export class LocalEnds {
  readonly #ends = new Set<string>();

  /** Until the socket closes. */
  add(socket: Socket): void {
    const { localAddress: address, localPort: port, remoteAddress: serverAddress, remotePort: serverPort } = socket;
    if (address === undefined || port === undefined || serverAddress === undefined || serverPort === undefined) return;
    const key = keyOf({ address, port, serverAddress, serverPort });
    this.#ends.add(key);
    socket.once("close", () => this.#ends.delete(key));
  }

  has(peer: Peer): boolean {
    return this.#ends.has(keyOf(peer));
  }
}

/** The system gives one local port to connections to several servers: a client of this host may well have one of ours. */
function keyOf({ address, port, serverAddress, serverPort }: Peer): string {
  return `${plain(address)} ${port} ${plain(serverAddress)} ${serverPort}`;
}

/** A server that listens on IPv6 sees IPv4 addresses in a form of its own. */
function plain(address: string): string {
  return address.replace(/^::ffff:/i, "");
}
