/** The headers of a request to a provider: an allow-list of the client's, then ours, then the owner's. */

import type { ProviderType } from "../config/provider-config.js";
import type { ProtocolName } from "../gate/protocols/protocol.js";
import {
  connectionHeaders,
  connectionOptions,
  credentialHeaders,
  isHeaderName,
  isHeaderValue,
  privateHeaders,
  type ClientHeaders,
} from "../headers.js";
import { apiKeyHeader, clientCredential } from "./credentials.js";
import { HeaderList, type HeaderSource } from "./header-list.js";

/** What of a provider's configuration decides its headers. Names are lower case. */
export interface HeaderProvider {
  readonly type: ProviderType;
  readonly forwardClientCredentials: boolean;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly forwardHeaders: ReadonlySet<string>;
}

export interface RequestHeaderFacts {
  readonly client: ClientHeaders;
  readonly provider: HeaderProvider;
  readonly protocol: ProtocolName;
  readonly hasBody: boolean;
  /** The provider's key, already resolved. Undefined: none is configured. */
  readonly apiKey?: string | undefined;
  /** The client's query parameter `key`; used only with `forwardClientCredentials`. */
  readonly clientQueryKey?: string | undefined;
  /** Of the target. Lower-case names. */
  readonly headersOverride?:
    | {
        readonly set: readonly (readonly [name: string, value: string])[];
        readonly remove: ReadonlySet<string>;
      }
    | undefined;
  /** Trace context of the gateway's own span, in place of the client's. */
  readonly trace?: { readonly traceparent: string; readonly tracestate?: string | undefined } | undefined;
}

export interface RequestHeaders {
  /** Name, value, name, value, … Lower-case names, each once. */
  readonly headers: string[];
  /** Whose credential the request carries: decides whether a 401 is the client's or ours. */
  readonly credential: "own" | "client" | "none";
}

/** A value that cannot be sent. Names the header, never its value. */
export interface InvalidHeader {
  readonly invalidHeader: string;
  /** `client`: a 400. Else the owner's mistake. */
  readonly source: HeaderSource;
  readonly message: string;
}

const fromClient: readonly string[] = [
  "accept",
  "anthropic-version",
  "anthropic-beta",
  "openai-beta",
  "idempotency-key",
  "x-client-request-id",
  "traceparent",
  "tracestate",
];

/** Not even when `forwardHeaders` lists them. */
const neverForwarded: ReadonlySet<string> = new Set([
  ...connectionHeaders,
  ...credentialHeaders,
  ...privateHeaders,
  "accept-encoding",
  "content-encoding",
  "content-type",
]);

const bedrockPrefix = "x-amzn-bedrock-";
const json = "application/json";
const jsonType = /^application\/(?:[\w.-]+\+)?json[ \t]*(?:;|$)/i;

/**
 * Later ones win: the client's, the gateway's, the provider's `headers`, the target's `headersOverride`. The credential
 * comes after `headersOverride.remove`, so that no request leaves without the key that was meant, and before
 * `headersOverride.set`, which may hold another one.
 */
export function requestHeaders(facts: RequestHeaderFacts): RequestHeaders | InvalidHeader {
  const out = new HeaderList();
  takeFromClient(facts, out);
  const { provider, trace, headersOverride } = facts;
  if (facts.protocol === "anthropic-messages" && !out.has("anthropic-version")) {
    out.add("anthropic-version", "2023-06-01", "config");
  }
  // The gate reads the bytes.
  out.set("accept-encoding", "identity", "config");
  if (trace !== undefined) {
    out.set("traceparent", trace.traceparent, "config");
    out.delete("tracestate");
    if (trace.tracestate !== undefined) out.add("tracestate", trace.tracestate, "config");
  }
  for (const [name, value] of provider.headers) out.set(name, value, "config");
  if (headersOverride !== undefined) for (const name of headersOverride.remove) out.delete(name);
  const credential = putCredential(facts, out);
  if (headersOverride !== undefined) for (const [name, value] of headersOverride.set) out.set(name, value, "config");
  const invalid = out.findInvalid(isHeaderValue);
  if (invalid !== undefined) return invalidHeader(invalid.name, invalid.source);
  return { headers: out.flat, credential };
}

function takeFromClient({ client, provider, hasBody }: RequestHeaderFacts, out: HeaderList): void {
  const dropped = connectionOptions(client["connection"]);
  for (const name of fromClient) {
    const value = sent(client, name, dropped);
    if (value !== undefined) out.add(name, value, "client");
  }
  if (provider.type === "bedrock") {
    for (const name of Object.keys(client)) {
      const value = name.startsWith(bedrockPrefix) ? sent(client, name, dropped) : undefined;
      if (value !== undefined) out.add(name, value, "client");
    }
  }
  for (const name of provider.forwardHeaders) {
    const value = neverForwarded.has(name) ? undefined : sent(client, name, dropped);
    if (value !== undefined) out.set(name, value, "client");
  }
  if (hasBody) out.add("content-type", bodyType(client["content-type"], dropped), "client");
}

function sent(client: ClientHeaders, name: string, dropped: ReadonlySet<string>): string | undefined {
  if (!Object.hasOwn(client, name) || dropped.has(name)) return undefined;
  const value = client[name];
  return typeof value === "object" ? value.join(", ") : value;
}

function bodyType(type: ClientHeaders[string], dropped: ReadonlySet<string>): string {
  const isJson = type === json || (typeof type === "string" && jsonType.test(type));
  return isJson && !dropped.has("content-type") ? type : json;
}

function putCredential(facts: RequestHeaderFacts, out: HeaderList): RequestHeaders["credential"] {
  const { provider, client, apiKey, clientQueryKey } = facts;
  if (provider.forwardClientCredentials) {
    const theirs = clientCredential(provider.type, client, clientQueryKey);
    if (theirs !== undefined) {
      out.set(theirs.name, theirs.value, "client");
      return "client";
    }
  }
  if (apiKey === undefined) return "none";
  const ours = apiKeyHeader(provider.type, apiKey);
  out.set(ours.name, ours.value, "credential");
  return "own";
}

function invalidHeader(name: string, source: HeaderSource): InvalidHeader {
  const whose = source === "client" ? "The request header" : "The configured header";
  return {
    invalidHeader: name,
    source,
    message: `${whose} \`${name}\` holds characters that a header value cannot carry`,
  };
}

/**
 * Adds what `sign` of a Bedrock provider answered; its headers win. Those that the HTTP client sets itself are left out.
 */
export function withSignedHeaders(
  { headers, credential }: RequestHeaders,
  signed: Readonly<Record<string, string>>,
): RequestHeaders | InvalidHeader {
  const out = new HeaderList();
  for (let at = 0; at + 1 < headers.length; at += 2) {
    out.add(headers[at] as string, headers[at + 1] as string, "config");
  }
  for (const [spelled, value] of Object.entries(signed)) {
    const name = spelled.toLowerCase();
    if (connectionHeaders.has(name)) continue;
    if (typeof value !== "string" || !isHeaderValue(value) || !isHeaderName(name)) {
      return invalidHeader(name, "credential");
    }
    out.set(name, value, "credential");
  }
  const isSigned = out.has("authorization");
  return { headers: out.flat, credential: isSigned && credential === "none" ? "own" : credential };
}
