/** Providers as users write them. Exported through config.ts. */

import type { ProtocolName } from "../gate/protocols/protocol.js";
import type { Identity } from "../request.js";

export type ProviderType =
  | "openai"
  | "openai-compatible"
  | "anthropic"
  | "anthropic-compatible"
  | "azure"
  | "google"
  | "bedrock"
  | "ollama";

/** An account at a vendor. */
export interface ProviderConfig {
  readonly type: ProviderType;
  /**
   * http or https, without credentials, query and hash. For `openai` and `openai-compatible` it ends where the
   * vendor's SDKs want it, mostly in `/v1`; for all others it carries neither the version nor the API path. Default for
   * `openai`, `anthropic`, `google`, and for `bedrock` with a `region`: the vendor's; required otherwise.
   */
  readonly baseUrl?: string | undefined;
  /**
   * Sent in the header that the type uses. A function is asked before every attempt. Required for `openai`,
   * `anthropic`, `azure`, `google`, and for `bedrock` without `sign`, unless `forwardClientCredentials` is true. The key
   * present with an undefined or empty value is always an error: no request goes out without the key that was meant.
   */
  readonly apiKey?: ApiKey | undefined;
  /** Passes the client's own credential on to this provider. Default: false. */
  readonly forwardClientCredentials?: boolean | undefined;
  /** Sent with every request to this provider. Default: none. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Further request headers of the client that are passed on. Default: none. */
  readonly forwardHeaders?: readonly string[] | undefined;
  /** The APIs it serves, in place of the default of its type. */
  readonly protocols?: readonly ProtocolName[] | undefined;
  /**
   * Whether a clean end without the protocol's last event is a failure. Default: false for `*-compatible`, else true.
   */
  readonly requireTerminal?: boolean | undefined;
  /** `azure` only: the `api-version` of the query, and with it the deployment paths. Default: the `/openai/v1` paths. */
  readonly apiVersion?: string | undefined;
  /** `bedrock` only: the AWS region, e.g. `eu-central-1`. */
  readonly region?: string | undefined;
  /** `bedrock` only: headers that sign the request (SigV4), asked for every attempt. */
  readonly sign?: SignRequest | undefined;
}

export type ApiKey = string | ((context: RequestContext) => string | Promise<string>);

/** What `apiKey` functions are told of the request. */
export interface RequestContext {
  readonly requestId: string;
  /** Name of the provider in the configuration. */
  readonly provider: string;
  /** The model as it is sent to the provider. */
  readonly model: string;
  /** What the host's auth said of the caller. */
  readonly identity: Identity | undefined;
  /** Aborts when the client leaves. */
  readonly signal: AbortSignal;
}

/** Answers the headers to add; they replace those of the same name. A rejection fails the attempt. */
export type SignRequest = (
  request: SignableRequest,
) => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>;

export interface SignableRequest {
  readonly method: string;
  /** Absolute, with the query. */
  readonly url: string;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | undefined;
  readonly region: string | undefined;
}
