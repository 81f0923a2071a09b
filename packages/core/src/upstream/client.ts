/** HTTP to providers over undici: one pool per configured origin, made when it is first needed. */

import type { Client, Dispatcher, Pool } from "undici";
import { errors } from "undici";
import type { CallSender } from "./call.js";
import { UndiciCall } from "./call.js";
import type { Connector } from "./connections.js";
import { createConnection, createConnector, createPool } from "./connections.js";
import type { Peer } from "../request.js";
import { LocalEnds } from "./local-ends.js";
import type { UpstreamCall, UpstreamClient, UpstreamHandler, UpstreamRequest } from "./upstream.js";

export interface UndiciClientOptions {
  /**
   * Used for every request, whatever its origin, and never closed. A request over it is not sent again when its socket
   * had gone stale, since only the dispatcher's owner knows how to get a fresh connection. Default: own pools.
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

interface Origin {
  readonly connector: Connector;
  readonly pool: Pool;
}

class UndiciClient implements UpstreamClient, CallSender {
  readonly #dispatcher: Dispatcher | undefined;
  readonly #clientOptions: Client.Options;
  readonly #clientTtl: number;
  /** By origin, then by connect timeout. Both come from the configuration, which bounds the map. */
  readonly #origins = new Map<string, Map<number, Origin>>();
  /** Connections made to send a request again; each is closed when its one request is over. */
  readonly #single = new Set<Client>();
  readonly #ends = new LocalEnds();
  #closed = false;

  constructor(options: UndiciClientOptions) {
    this.#dispatcher = options.dispatcher as Dispatcher | undefined;
    this.#clientTtl = options.connectionTtlMs ?? 300_000;
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
    else this.#dispatch(call);
    return call;
  }

  #dispatch(call: UndiciCall): void {
    let dispatcher: Dispatcher;
    try {
      dispatcher = this.#dispatcher ?? this.#originOf(call.request).pool;
    } catch (error) {
      call.failLater(error as Error);
      return;
    }
    call.dispatchTo(dispatcher);
  }

  resend(call: UndiciCall): void {
    const { origin } = call.request;
    const client = createConnection(origin, this.#originOf(call.request).connector, this.#clientOptions, this.#ends);
    this.#single.add(client);
    call.dispatchTo(client);
    // Closing waits for the request, and refuses any other.
    client.close(() => this.#single.delete(client));
  }

  #originOf({ origin, connectTimeoutMs }: UpstreamRequest): Origin {
    let byTimeout = this.#origins.get(origin);
    if (byTimeout === undefined) {
      byTimeout = new Map();
      this.#origins.set(origin, byTimeout);
    }
    let found = byTimeout.get(connectTimeoutMs);
    if (found === undefined) {
      const connector = createConnector(connectTimeoutMs);
      const options = { ...this.#clientOptions, clientTtl: this.#clientTtl };
      found = { connector, pool: createPool(origin, connector, options, this.#ends) };
      byTimeout.set(connectTimeoutMs, found);
    }
    return found;
  }

  owns(peer: Peer): boolean {
    return this.#ends.has(peer);
  }

  async close(): Promise<void> {
    this.#closed = true;
    const ending: Promise<void>[] = [];
    for (const byTimeout of this.#origins.values()) {
      for (const { pool } of byTimeout.values()) ending.push(pool.destroy());
    }
    for (const client of this.#single) ending.push(client.destroy());
    this.#origins.clear();
    await Promise.all(ending);
  }
}
