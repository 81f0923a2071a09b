/** The connections to providers by their two ends: a request that comes over one of them was sent by ourselves. */

import type { Socket } from "node:net";
import type { Peer } from "../request.js";

export class LocalEnds {
  readonly #ends = new Set<string>();
  /** How many of them have each port of ours: the first look, since nearly every client has none of these. */
  readonly #ports = new Map<number, number>();

  /** Until the socket closes. */
  add(socket: Socket): void {
    const { localAddress: address, localPort: port, remoteAddress: serverAddress, remotePort: serverPort } = socket;
    if (address === undefined || port === undefined || serverAddress === undefined || serverPort === undefined) return;
    const key = keyOf({ address, port, serverAddress, serverPort });
    this.#ends.add(key);
    this.#count(port, 1);
    socket.once("close", () => {
      this.#ends.delete(key);
      this.#count(port, -1);
    });
  }

  has(peer: Peer): boolean {
    return this.#ports.has(peer.port) && this.#ends.has(keyOf(peer));
  }

  #count(port: number, change: number): void {
    const count = (this.#ports.get(port) ?? 0) + change;
    if (count === 0) this.#ports.delete(port);
    else this.#ports.set(port, count);
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
