/**
 * A connection of undici, with what undici does not tell: which request runs on a used socket, and which socket belongs to
 * a request. One undici `Client` holds at most one socket, and with `pipelining: 1` at most one request.
 */

import type { Socket } from "node:net";
import { buildConnector, Client } from "undici";
import type { LocalEnds } from "./local-ends.js";

/** What a connection needs of the request that uses it. */
export interface ConnectionUser {
  readonly paused: boolean;
  /** Lets the parser go on although the reader is paused: no data is left, only the end. */
  flush(): void;
}

/** What ends an aborted request. Nobody sees it. Shared, since a stack per abort is of no use. */
export const abortedError: Error = Object.assign(new Error("The request was aborted"), {
  code: "UND_ERR_ABORTED",
});

/** Stands in for `ECONNRESET` while undici looks at an error; see `guard`. */
const pausedReset = "UND_ERR_SOCKET_RESET_WHILE_PAUSED";

/** Undoes what `guard` did to the code of a reset. */
export function restoreCode(error: Error & { code?: string }): void {
  if (error.code === pausedReset) error.code = "ECONNRESET";
}

const deadCodes: ReadonlySet<string> = new Set(["UND_ERR_SOCKET", "ECONNRESET", "ECONNABORTED", "EPIPE"]);

/** Whether a connection died under its request. */
export function isDeadConnection({ code }: Error & { code?: string }): boolean {
  return code !== undefined && deadCodes.has(code);
}

/** The connector returns its socket, which its type does not say. */
type SocketConnector = (options: buildConnector.Options, callback: buildConnector.Callback) => Socket | undefined;

/** Shared by all connections to an origin, so that they share the cache of TLS sessions. */
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

export class Connection {
  readonly client: Client;
  /** The request that waits for the connection or runs on it. */
  user: ConnectionUser | undefined;
  /** Requests started on the present socket; 0 without one. */
  requests = 0;
  /** The socket while it is being connected. */
  connecting: Socket | undefined;
  /** When the present socket was connected, on the clock of `performance.now()`. */
  openedAt = 0;
  /** Neighbours in the list of idle connections, which alone sets them. */
  newer: Connection | undefined;
  older: Connection | undefined;
  listed = false;
  readonly #connector: SocketConnector;
  readonly #ends: LocalEnds;
  #socket: Socket | undefined;

  /** Throws where the origin is none. */
  constructor(origin: string, connector: Connector, options: Client.Options, ends: LocalEnds) {
    this.#connector = connector as SocketConnector;
    this.#ends = ends;
    this.client = new Client(origin, {
      ...options,
      connect: (target, callback) => this.#connect(target, callback),
    });
  }

  /** Has a socket that can take a request. */
  get open(): boolean {
    return this.#socket !== undefined && !this.#socket.destroyed;
  }

  #connect(target: buildConnector.Options, callback: buildConnector.Callback): void {
    if (this.user === undefined) {
      // undici puts an aborted request back into its queue and connects again for it: a handshake for nothing at each
      // client that leaves. A connection is wanted only while a request is.
      process.nextTick(callback, abortedError, null);
      return;
    }
    this.connecting = this.#connector(target, (...result) => {
      this.connecting = undefined;
      const [, socket] = result;
      if (socket !== null && socket !== undefined) this.#opened(socket);
      callback(...result);
    });
  }

  #opened(socket: Socket): void {
    this.#socket = socket;
    this.requests = 0;
    this.openedAt = performance.now();
    this.#guard(socket);
    this.#ends.add(socket);
  }

  /**
   * Keeps undici 7 from ending the process. It asserts that its parser is not paused when the socket of a response that
   * is not kept alive ends or is reset, and the assertion fails inside a socket listener, where nobody can catch it.
   * These listeners run before those of undici: they let a paused parser go on before an `end`, and give a reset a code
   * that undici does not treat specially. https://github.com/nodejs/undici/issues/5360, mended in undici 8 only.
   */
  #guard(socket: Socket): void {
    socket.on("end", () => {
      if (this.user?.paused === true) this.user.flush();
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "ECONNRESET" && this.user?.paused === true) error.code = pausedReset;
    });
    socket.on("close", () => {
      this.requests = 0;
      this.#socket = undefined;
    });
  }
}
