/** HTTP to providers over undici: connections to each configured origin, made when they are first needed. */

import type { Client, Dispatcher } from "undici";
import { errors } from "undici";
import type { CallSender } from "./call.js";
import { UndiciCall } from "./call.js";
import { ConnectionPool } from "./connection-pool.js";
import type { Peer } from "../request.js";
import type { Connection } from "./connections.js";
import { ForeignHandler } from "./foreign-handler.js";
import { LocalEnds } from "./local-ends.js";
import type { UpstreamCall, UpstreamClient, UpstreamHandler, UpstreamRequest } from "./upstream.js";

export interface UndiciClientOptions {
  /**
   * Used for every request, whatever its origin, and never closed. A request over it is not sent again when its socket
   * had gone stale, since only the dispatcher's owner knows how to get a fresh connection. Default: own connections.
   */
  readonly dispatcher?: ForeignDispatcher | undefined;
  /** How long an idle connection is kept, in ms. Default 10 000. */
  readonly keepAliveTimeoutMs?: number | undefined;
  /** The longest that a provider's own `Keep-Alive` hint is followed, in ms. Default 25 000: CDNs close at about 30 s. */
  readonly keepAliveMaxTimeoutMs?: number | undefined;
  /** Age after which an idle connection is replaced, so that DNS changes are followed, in ms. Default 300 000. */
  readonly connectionTtlMs?: number | undefined;
}

/** A dispatcher of undici, this one or another copy: as the configuration types it, without undici's own types. */
interface ForeignDispatcher {
  dispatch(options: never, handler: never): boolean;
}

/** Creates the client that the attempts send with. Its sockets end with `close()`; idle ones do not keep a process alive. */
export function createUndiciClient(options: UndiciClientOptions = {}): UpstreamClient {
  return new UndiciClient(options);
}

class UndiciClient implements UpstreamClient, CallSender {
  readonly #dispatcher: Dispatcher | undefined;
  readonly #clientOptions: Client.Options;
  readonly #connectionTtlMs: number;
  /** By origin, then by connect timeout. Both come from the configuration, which bounds the map. */
  readonly #pools = new Map<string, Map<number, ConnectionPool>>();
  readonly #ends = new LocalEnds();
  #closed = false;

  constructor(options: UndiciClientOptions) {
    this.#dispatcher = options.dispatcher as Dispatcher | undefined;
    this.#connectionTtlMs = options.connectionTtlMs ?? 300_000;
    this.#clientOptions = {
      pipelining: 1,
      allowH2: false,
      keepAliveTimeout: options.keepAliveTimeoutMs ?? 10_000,
      keepAliveMaxTimeout: options.keepAliveMaxTimeoutMs ?? 25_000,
      // The attempt keeps its own clocks; those of undici are coarse and stop while a reader is paused.
      headersTimeout: 0,
      bodyTimeout: 0,
      maxHeaderSize: 32_768,
    };
  }

  get canResend(): boolean {
    return this.#dispatcher === undefined && !this.#closed;
  }

  send(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall {
    const call = new UndiciCall(request, handler, this);
    if (this.#closed) call.failLater(new errors.ClientClosedError());
    else this.#dispatch(call, request);
    return call;
  }

  #dispatch(call: UndiciCall, request: UpstreamRequest): void {
    if (this.#dispatcher !== undefined) {
      call.dispatchTo(this.#dispatcher, new ForeignHandler(call));
      return;
    }
    let connection: Connection;
    let pool: ConnectionPool;
    try {
      pool = this.#poolOf(request);
      connection = pool.take();
    } catch (error) {
      call.failLater(error as Error);
      return;
    }
    call.runOn(connection);
    if (call.refused) pool.settle(connection);
  }

  resend(call: UndiciCall, request: UpstreamRequest): void {
    this.#poolOf(request).takeSingle((connection) => call.runOn(connection));
  }

  #poolOf({ origin, connectTimeoutMs }: UpstreamRequest): ConnectionPool {
    let byTimeout = this.#pools.get(origin);
    if (byTimeout === undefined) {
      byTimeout = new Map();
      this.#pools.set(origin, byTimeout);
    }
    let pool = byTimeout.get(connectTimeoutMs);
    if (pool === undefined) {
      const ttlMs = this.#connectionTtlMs;
      pool = new ConnectionPool({ origin, connectTimeoutMs, ttlMs, client: this.#clientOptions, ends: this.#ends });
      byTimeout.set(connectTimeoutMs, pool);
    }
    return pool;
  }

  owns(peer: Peer): boolean {
    return this.#ends.has(peer);
  }

  async close(): Promise<void> {
    this.#closed = true;
    const ending: Promise<void>[] = [];
    for (const byTimeout of this.#pools.values()) {
      for (const pool of byTimeout.values()) ending.push(pool.destroy());
    }
    this.#pools.clear();
    await Promise.all(ending);
  }
}
