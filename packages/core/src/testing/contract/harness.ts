/** What an adapter's tests hand to the contract. */

import type { IncomingHttpHeaders } from "node:http";
import type { GatewayConfig } from "../../config.js";
import type { Gateway } from "../../gateway.js";
import type { Identity } from "../../request.js";

export type IdentityAnswer = Identity | { readonly reject: 401 | 403 } | undefined;

/** Which parser the host runs before the gateway. */
export type BodyParser =
  | "none"
  /** Leaves the parsed value alone, as `express.json()` does. */
  | "json"
  /** Leaves the parsed value and the raw bytes, as `@koa/bodyparser` does, or `express.json({ verify })`. */
  | "json-keeping-raw"
  /** Leaves a Buffer, as `express.raw()` does. */
  | "raw";

/** The host application that the harness builds, from the outside in. */
export interface AdapterSetup {
  readonly config: GatewayConfig | Gateway;
  /** `identify` is called with the request's headers; the harness takes them from `req` or `ctx`. */
  readonly options?: {
    readonly prefix?: string;
    readonly identify?: (headers: IncomingHttpHeaders) => IdentityAnswer | Promise<IdentityAnswer>;
  };
  /** Response headers that a middleware before the gateway sets. */
  readonly earlierHeaders?: Readonly<Record<string, string | string[]>>;
  /** A middleware before the gateway waits for this. `left` settles when the response's `close` event came. */
  readonly earlierWait?: (left: Promise<void>) => Promise<unknown>;
  /** The framework's usual compression middleware, before the gateway. */
  readonly compression?: boolean;
  /** Default `none`. */
  readonly bodyParser?: BodyParser;
  /** Mounts the gateway below a path with the framework's own means. */
  readonly mount?: string;
}

/**
 * The running application. After the gateway it has a route of the host for whatever reaches it: 200, the header
 * `x-host: yes`, the header `x-host-body-bytes` with the number of body bytes that it could still read from the request
 * (0 after a parser), and the body `METHOD path`, where the path is the one that the client asked for, mount included.
 */
export interface RunningApp {
  /** `http://127.0.0.1:port` */
  readonly url: string;
  /** What reached the framework's error handler or its `error` event. */
  readonly appErrors: readonly unknown[];
  /** Stops the server and destroys its connections; closes a gateway that the adapter made. */
  close(): Promise<void>;
}

export interface AdapterHarness {
  /** For the names of the tests: `Express 5`. */
  readonly name: string;
  start(setup: AdapterSetup): Promise<RunningApp>;
  /** Errors which the framework itself reports when a client leaves or a stream breaks. Default: none. */
  readonly documentedAppError?: (error: unknown) => boolean;
}

/** The test framework's functions. The contract brings its own assertions. */
export interface ContractFramework {
  readonly describe: (name: string, body: () => void) => void;
  readonly it: (name: string, body: () => Promise<void>) => void;
}
