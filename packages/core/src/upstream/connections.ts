/**
 * Connections of undici, with what undici does not tell: which request runs on a used socket, and which socket belongs to
 * a request. One undici `Client` holds at most one socket, and with `pipelining: 1` at most one request.
 */

import type { Socket } from "node:net";
import type { Dispatcher } from "undici";
import { buildConnector, Client, Pool } from "undici";
import type { LocalEnds } from "./local-ends.js";

/** What a connection needs of the request that uses it. */
export interface ConnectionUser {
  /** The connection that will carry the request; before it is established. */
  attach(connection: Connection): void;
  readonly paused: boolean;
  /** Lets the parser go on although the reader is paused: no data is left, only the end. */
  flush(): void;
  /** True when the dispatch failed before anything was queued. */
  readonly refused: boolean;
}

/** State of one undici `Client`: its socket, if any, and the request on it. */
export interface Connection {
  user: ConnectionUser | undefined;
  /** Requests started on the present socket; 0 without one. */
  requests: number;
  /** The socket while it is being connected. */
  connecting: Socket | undefined;
}

/** Options of a dispatch; the user rides along, since undici hands the object through to the `Client`. */
export interface DispatchOptions extends Dispatcher.DispatchOptions {
  readonly user: ConnectionUser;
}

/** What ends an aborted request. Nobody sees it. Shared, since a stack per abort is of no use. */
export const abortedError: Error = Object.assign(new Error("The request was aborted"), {
  code: "UND_ERR_ABORTED",
});

/** Stands in for `ECONNRESET` while undici looks at an error; see `guardSocket`. */
const pausedReset = "UND_ERR_SOCKET_RESET_WHILE_PAUSED";

/** Undoes what `guardSocket` did to the code of a reset. */
export function restoreCode(error: Error & { code?: string }): void {
  if (error.code === pausedReset) error.code = "ECONNRESET";
}

/**
 * Keeps undici 7 from ending the process. It asserts that its parser is not paused when the socket of a response that
 * is not kept alive ends or is reset, and the assertion fails inside a socket listener, where nobody can catch it.
 * These listeners run before those of undici: they let a paused parser go on before an `end`, and give a reset a code
 * that undici does not treat specially. https://github.com/nodejs/undici/issues/5360, mended in undici 8 only.
 */
function guardSocket(socket: Socket, connection: Connection): void {
  socket.on("end", () => {
    if (connection.user?.paused === true) connection.user.flush();
  });
  socket.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "ECONNRESET" && connection.user?.paused === true) error.code = pausedReset;
  });
  socket.on("close", () => {
    connection.requests = 0;
  });
}

/** The connector returns its socket, which its type does not say. */
type SocketConnector = (options: buildConnector.Options, callback: buildConnector.Callback) => Socket | undefined;

/** Shared by all connections of a pool, so that they share the cache of TLS sessions. */
export type Connector = buildConnector.connector;

/** @param connectTimeoutMs coarse (undici counts in half seconds); 0: no limit */
export function createConnector(connectTimeoutMs: number): Connector {
  return buildConnector({
    allowH2: false,
    timeout: connectTimeoutMs,
    // Probes keep NAT entries alive while a model thinks in silence.
    keepAlive: true,
    keepAliveInitialDelay: 20_000,
    autoSelectFamily: true,
  });
}

/** Tells the request that is dispatched to it which connection it got. */
class TrackedClient extends Client {
  readonly #connection: Connection;

  constructor(origin: string, options: Client.Options, connection: Connection) {
    super(origin, options);
    this.#connection = connection;
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const { user } = options as DispatchOptions;
    user.attach(this.#connection);
    // A refused request occupies nothing. Reported as busy, the pool would wait for a drain of this client that never
    // comes, and leak it.
    return super.dispatch(options, handler) || user.refused;
  }
}

/** One connection, outside of any pool. `options.connect` must be a connector. */
export function createConnection(
  origin: string,
  connector: Connector,
  options: Client.Options,
  ends: LocalEnds,
): Client {
  const connection: Connection = { user: undefined, requests: 0, connecting: undefined };
  const connect: Connector = (target, callback) => {
    if (connection.user === undefined) {
      // undici puts an aborted request back into its queue and connects again for it: a handshake for nothing at each
      // client that leaves. A connection is wanted only while a request is.
      process.nextTick(callback, abortedError, null);
      return;
    }
    connection.connecting = (connector as SocketConnector)(target, (...result) => {
      connection.connecting = undefined;
      const [, socket] = result;
      if (socket !== null && socket !== undefined) {
        connection.requests = 0;
        guardSocket(socket, connection);
        ends.add(socket);
      }
      callback(...result);
    });
  };
  return new TrackedClient(origin, { ...options, connect }, connection);
}

/** A pool without a limit on connections: requests that wait in a pool of undici cannot be cancelled. */
export function createPool(
  origin: string,
  connector: Connector,
  options: Client.Options & { clientTtl: number },
  ends: LocalEnds,
): Pool {
  return new Pool(origin, {
    ...options,
    connect: connector,
    factory: (url, clientOptions) => createConnection(String(url), connector, clientOptions, ends),
  });
}
