/** The request as an adapter hands it over. */

/** What the host's own auth says of the caller. */
export interface Identity {
  readonly subject?: string;
  /** String values up to 128 characters. */
  readonly metadata?: Readonly<Record<string, string>>;
}

/** Both ends of a connection: one port may serve connections to several servers, the client's end alone tells nothing. */
export interface Peer {
  /** The client's end. */
  readonly address: string;
  readonly port: number;
  /** The server's end. */
  readonly serverAddress: string;
  readonly serverPort: number;
}

/**
 * Tells when the client leaves: the part of an `AbortSignal` that is used of one. An `AbortSignal` is one; the adapters
 * hand over a lighter thing, since nearly every request ends without it.
 */
export interface ClientSignal {
  /** The client has left. */
  readonly aborted: boolean;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
  /** The same as an `AbortSignal`, made when it is asked for. Absent: it is one itself. */
  toAbortSignal?(): AbortSignal;
}

/** For code that takes nothing less, such as `fetch`. */
export function abortSignalOf(signal: ClientSignal): AbortSignal {
  return signal.toAbortSignal?.() ?? (signal as AbortSignal);
}

export interface GatewayRequest {
  readonly method: string;
  /** Path and query below the mount point, as it came. */
  readonly url: string;
  /** Mounted below a path: the routes without `/v1` match too. */
  readonly mounted?: boolean;
  /** Lower-case names, as `node:http` gives them. */
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  /** Raw bytes, or the value that a body parser made of them. `undefined`: no body. */
  readonly body: Uint8Array | { readonly parsed: unknown } | undefined;
  readonly identity?: Identity | undefined;
  /** The connection, by which a gateway that calls itself is found. Absent: not looked for. */
  readonly peer?: Peer | undefined;
  /** Aborts when the client leaves. */
  readonly signal: ClientSignal;
}
