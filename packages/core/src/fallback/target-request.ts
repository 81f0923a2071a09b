/** The request as one target gets it. */

import type { RoutePath } from "../api-path.js";
import type { Clock } from "../clock.js";
import type { RequestContext } from "../config/provider-config.js";
import type { ResolvedTarget } from "../config/resolved.js";
import type { Failure } from "../errors.js";
import type { TraceHeaders } from "../observability/observer.js";
import { abortSignalOf } from "../request.js";
import { badRequest } from "../request-failures.js";
import { encodeBody, modelKey, says } from "../routing/request-body.js";
import type { RoutedTarget } from "../routing/resolve.js";
import { queryOf } from "../routing/routes.js";
import { upstreamPath, type InvalidPath } from "../upstream/path.js";
import {
  requestHeaders,
  withSignedHeaders,
  type InvalidHeader,
  type RequestHeaders,
} from "../upstream/request-headers.js";
import type { UpstreamRequest } from "../upstream/upstream.js";
import { askHost } from "./ask-host.js";
import type { Credentials } from "./attempt-record.js";
import type { RunFacts } from "./run-facts.js";

export interface TargetRequest {
  readonly upstream: UpstreamRequest;
  /** The request carries the client's own credential: its refusal is the client's to see. */
  readonly clientCredential: boolean;
  /** What no answer may repeat. */
  readonly credentials: Credentials;
}

/** A request that only lacks its credential. */
interface Unauthorized {
  readonly method: string;
  readonly path: string;
  readonly body: Uint8Array | undefined;
}

/**
 * @param trace trace context of the attempt, in place of the client's
 * @returns a promise only where the host has to be asked for a key or a signature
 */
export function targetRequest(
  facts: RunFacts,
  routed: RoutedTarget,
  clock: Clock,
  trace: TraceHeaders | undefined,
): TargetRequest | Failure | Promise<TargetRequest | Failure> {
  const { target, model } = routed;
  const { route, request } = facts;
  const { provider } = target;
  const query = queryOf(request.url);
  const plain = query === "" && route.id === undefined;
  const path = plain
    ? pathOf(routed, route.path)
    : upstreamPath(provider, { route: route.path, model, id: route.id, query });
  if (typeof path !== "string") return badRequest(path.invalidPath, "model");
  const body = route.id === undefined ? targetBody(facts, target, model) : undefined;
  const unauthorized = { method: request.method, path, body };
  const { apiKey, sign } = provider;
  if (typeof apiKey === "function" || sign !== undefined)
    return askForCredential(unauthorized, facts, target, model, clock, trace);
  if (apiKey === "") return noCredential(undefined);
  const headers = headersOf(unauthorized, facts, target, apiKey, trace);
  return "invalidHeader" in headers ? unsendable(headers) : authorized(unauthorized, target, headers, apiKey);
}

/** Of the last API that the target was called for: nearly all are called for one. Without query and id nothing else counts. */
const paths = new WeakMap<RoutedTarget, { readonly route: RoutePath; readonly path: string | InvalidPath }>();

function pathOf(routed: RoutedTarget, route: RoutePath): string | InvalidPath {
  const known = paths.get(routed);
  if (known !== undefined && known.route === route) return known.path;
  const path = upstreamPath(routed.target.provider, { route, model: routed.model });
  paths.set(routed, { route, path });
  return path;
}

/**
 * Asks for the key and the signature every time: both may be short-lived. Each may take as long as connecting; later, or
 * when the client leaves, it counts as missing.
 */
async function askForCredential(
  unauthorized: Unauthorized,
  facts: RunFacts,
  target: ResolvedTarget,
  model: string,
  clock: Clock,
  trace: TraceHeaders | undefined,
): Promise<TargetRequest | Failure> {
  const { apiKey: key, sign, origin, region, name } = target.provider;
  const limits = { clock, timeoutMs: target.timeouts.connectTimeoutMs, signal: facts.signal };
  const { method, path, body } = unauthorized;
  let apiKey: string | undefined;
  try {
    apiKey = typeof key === "function" ? await askHost(() => key(contextOf(facts, name, model)), limits) : key;
  } catch (cause) {
    return noCredential(cause);
  }
  if (key !== undefined && (typeof apiKey !== "string" || apiKey === "")) return noCredential(undefined);
  let headers = headersOf(unauthorized, facts, target, apiKey, trace);
  if (!("invalidHeader" in headers) && sign !== undefined) {
    const unsigned = { method, url: origin + path, headers: toRecord(headers.headers), body, region };
    try {
      headers = withSignedHeaders(headers, await askHost(() => sign(unsigned), limits));
    } catch (cause) {
      return noCredential(cause);
    }
  }
  return "invalidHeader" in headers ? unsendable(headers) : authorized(unauthorized, target, headers, apiKey);
}

function headersOf(
  { body }: Unauthorized,
  { request, route }: RunFacts,
  { provider, headersOverride }: ResolvedTarget,
  apiKey: string | undefined,
  trace: TraceHeaders | undefined,
): RequestHeaders | InvalidHeader {
  const query = queryOf(request.url);
  return requestHeaders({
    client: request.headers,
    provider,
    protocol: route.protocol,
    hasBody: body !== undefined,
    apiKey,
    clientQueryKey: query === "" ? undefined : (new URLSearchParams(query).get("key") ?? undefined),
    headersOverride,
    trace,
  });
}

function authorized(
  { method, path, body }: Unauthorized,
  { provider: { origin }, timeouts: { connectTimeoutMs } }: ResolvedTarget,
  { headers, credential }: RequestHeaders,
  apiKey: string | undefined,
): TargetRequest {
  return {
    upstream: { method, origin, path, headers, body, connectTimeoutMs },
    clientCredential: credential === "client",
    credentials: { headers, apiKey },
  };
}

function unsendable({ source, message, invalidHeader }: InvalidHeader): Failure {
  return source === "client" ? badRequest(message, invalidHeader) : noCredential(undefined);
}

/** What a host's function for the key is told. Made only where there is one: its signal is dear. */
function contextOf({ requestId, request, signal }: RunFacts, provider: string, model: string): RequestContext {
  return { requestId, provider, model, identity: request.identity, signal: abortSignalOf(signal) };
}

function targetBody(facts: RunFacts, target: ResolvedTarget, model: string): Uint8Array {
  const { route, body } = facts;
  const changesNothing = target.overrideParams === undefined && target.dropParams.length === 0;
  if (changesNothing && route.model === undefined && says(body, modelKey(route.protocol, body.value), model))
    return body.bytes;
  return encodeBody(body, bodyEdits(facts, target, model));
}

/** Members that a target's configuration changes. The model first: `overrideParams` may name another one. */
function bodyEdits({ route, body }: RunFacts, target: ResolvedTarget, model: string): Map<string, unknown> {
  const edits = new Map<string, unknown>();
  if (route.model === undefined) edits.set(modelKey(route.protocol, body.value), model);
  for (const key of target.dropParams) edits.set(key, undefined);
  if (route.ignoresOverrides === true) return edits;
  for (const [key, value] of Object.entries(target.overrideParams ?? {})) edits.set(key, value);
  return edits;
}

/** As if the provider had refused it: the next target is tried, the client learns nothing of it. */
function noCredential(cause: unknown): Failure {
  return {
    kind: "http",
    status: 401,
    code: "upstream_auth_error",
    message: "The credential for the model provider is not available.",
    retryable: false,
    cause,
  };
}

function toRecord(flat: readonly string[]): Record<string, string> {
  const record: Record<string, string> = Object.create(null);
  for (let index = 0; index + 1 < flat.length; index += 2) record[flat[index] as string] = flat[index + 1] as string;
  return record;
}
