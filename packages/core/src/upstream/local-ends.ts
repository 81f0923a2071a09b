/** Our ends of the connections to providers: a request that comes from one of them was sent by ourselves. */

import type { Socket } from "node:net";
import type { Peer } from "../request.js";

export class LocalEnds {
  readonly #ends = new Set<string>();

  /** Until the socket closes. */
  add(socket: Socket): void {
    const { localAddress, localPort } = socket;
    if (localAddress === undefined || localPort === undefined) return;
    const key = keyOf({ address: localAddress, port: localPort });
    this.#ends.add(key);
    socket.once("close", () => this.#ends.delete(key));
  }

  has(peer: Peer): boolean {
    return this.#ends.has(keyOf(peer));
  }
}

/** A server that listens on IPv6 sees IPv4 addresses in a form of its own. */
function keyOf({ address, port }: Peer): string {
  return `${address.replace(/^::ffff:/i, "")} ${port}`;
}
