/**
 * The connections to one origin, without a limit on their number. In place of undici's `Pool`, which looks for an idle
 * connection from the first to the last, so that each request costs the more, the more streams are open.
 */

import type { Client } from "undici";
import { Connection, createConnector, type Connector } from "./connections.js";
import type { LocalEnds } from "./local-ends.js";

export interface ConnectionPoolOptions {
  readonly origin: string;
  /** See `createConnector`. */
  readonly connectTimeoutMs: number;
  /** Age of a socket after which it takes no further request, in ms. */
  readonly ttlMs: number;
  readonly client: Client.Options;
  readonly ends: LocalEnds;
}

export class ConnectionPool {
  readonly #options: ConnectionPoolOptions;
  readonly #connector: Connector;
  /** Those that have a socket or a request. */
  readonly #live = new Set<Connection>();
  /** Top of the list of idle ones. The last used is the next used: the others grow old and are closed. */
  #newest: Connection | undefined;

  constructor(options: ConnectionPoolOptions) {
    this.#options = options;
    this.#connector = createConnector(options.connectTimeoutMs);
  }

  /** Connections that have a socket or a request. */
  get size(): number {
    return this.#live.size;
  }

  /** An idle connection, or a new one. Throws where the origin is none. Its user must be set before the next tick. */
  take(): Connection {
    const eldest = performance.now() - this.#options.ttlMs;
    for (let idle = this.#newest; idle !== undefined; idle = this.#newest) {
      this.#unlist(idle);
      if (idle.open && idle.openedAt >= eldest) return idle;
      this.#live.delete(idle);
      void idle.client.destroy();
    }
    return this.#create();
  }

  /** A new connection for one request; closed when it is over. */
  takeSingle(send: (connection: Connection) => void): void {
    const connection = this.#create();
    send(connection);
    // Closing waits for the request, and refuses any other.
    connection.client.close(() => this.#live.delete(connection));
  }

  /** To be called when a request was refused before anything was queued; for all others undici tells. */
  settle(connection: Connection): void {
    // It gets another socket for a request that waits for it.
    if (connection.user !== undefined) return;
    if (connection.open && !connection.client.closed) this.#list(connection);
    else {
      this.#unlist(connection);
      this.#live.delete(connection);
    }
  }

  async destroy(): Promise<void> {
    await Promise.all([...this.#live].map(({ client }) => client.destroy()));
  }

  #create(): Connection {
    const { origin, client, ends } = this.#options;
    const connection = new Connection(origin, this.#connector, client, ends);
    this.#live.add(connection);
    const settle = (): void => this.settle(connection);
    // Not at the end of an answer: undici leaves the provider one turn of the event loop to close the socket.
    connection.client.on("drain", settle);
    connection.client.on("disconnect", settle);
    connection.client.on("connectionError", settle);
    return connection;
  }

  #list(connection: Connection): void {
    if (connection.listed) return;
    connection.listed = true;
    connection.older = this.#newest;
    if (this.#newest !== undefined) this.#newest.newer = connection;
    this.#newest = connection;
  }

  #unlist(connection: Connection): void {
    if (!connection.listed) return;
    connection.listed = false;
    const { newer, older } = connection;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    if (older !== undefined) older.newer = newer;
    connection.newer = undefined;
    connection.older = undefined;
  }
}
