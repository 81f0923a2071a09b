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
  readonly signal: AbortSignal;
}
