/** What the attempt driver needs of an HTTP client. `client.ts` implements it over undici. */

import type { Peer } from "../request.js";
import type { ResponseHeaders } from "../response-headers.js";

export interface UpstreamRequest {
  readonly method: string;
  /** Scheme, host and port, from the configuration only. */
  readonly origin: string;
  /** Path and query, beginning with one slash. */
  readonly path: string;
  /** Name, value, name, value, … Lower-case names. */
  readonly headers: readonly string[];
  /** Buffered, so that it can be sent again. Absent: no body. */
  readonly body?: Uint8Array | undefined;
  /** For the socket's own limit; the attempt keeps the exact clock. In ms. */
  readonly connectTimeoutMs: number;
}

/** Called by the client, in this order. After `onEnd`, `onError` or `abort()` nothing more is called. */
export interface UpstreamHandler {
  /** A connection is established and the request is being written. Called once, before `onHead`. */
  onConnected(): void;
  /** The final response head; 1xx answers are dropped before. Fields that the gateway neither reads nor passes on may be left out. */
  onHead(status: number, headers: ResponseHeaders): void;
  /** The chunk may be a view on a larger read: copy what is kept for long. */
  onData(chunk: Uint8Array): void;
  onEnd(): void;
  onError(error: Error): void;
}

export interface UpstreamCall {
  /** Closes the connection: the provider sees it. Also while connecting. Idempotent, calls no handler method. */
  abort(): void;
  /** Stop and start reading. Idempotent. */
  pause(): void;
  resume(): void;
  /**
   * From here on this handler is told in place of the one that the call was sent with, which passes on to it all that it is
   * still told: a shorter way for the chunks. Default: the longer one.
   */
  deliverTo?(handler: UpstreamHandler): void;
}

export interface UpstreamClient {
  /** Never throws for what the network does; that arrives at `onError`. Handler calls may come before it returns. */
  send(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall;
  /** Whether the connection is one of ours to a provider. */
  owns?(peer: Peer): boolean;
  /** Ends own sockets. A dispatcher that was handed in is left alone. */
  close(): Promise<void>;
}
