/** The request as one target gets it. */

import type { Clock } from "../clock.js";
import type { RequestContext } from "../config/provider-config.js";
import type { Failure } from "../errors.js";
import type { TraceHeaders } from "../observability/observer.js";
import { abortSignalOf, type GatewayRequest } from "../request.js";
import { badRequest } from "../request-failures.js";
import type { RequestBody } from "../routing/request-body.js";
import { encodeBody, modelKey } from "../routing/request-body.js";
import type { RoutedTarget } from "../routing/resolve.js";
import { queryOf, type Route } from "../routing/routes.js";
import { upstreamPath } from "../upstream/path.js";
import { requestHeaders, withSignedHeaders } from "../upstream/request-headers.js";
import type { UpstreamRequest } from "../upstream/upstream.js";
import { askHost } from "./ask-host.js";
import { secretsOf } from "./redact.js";

export interface TargetRequestFacts {
  readonly requestId: string;
  readonly route: Route;
  readonly request: GatewayRequest;
  readonly body: RequestBody;
  readonly clock: Clock;
  /** Trace context of the attempt, in place of the client's. */
  readonly trace?: TraceHeaders | undefined;
}

export interface TargetRequest {
  readonly upstream: UpstreamRequest;
  /** The request carries the client's own credential: its refusal is the client's to see. */
  readonly clientCredential: boolean;
  /** What no answer may repeat. */
  readonly secrets: readonly string[];
}

/**
 * Asks for the key (and the signature) every time: both may be short-lived. Each may take as long as connecting; later, or
 * when the client leaves, it counts as missing.
 */
export async function targetRequest(
  facts: TargetRequestFacts,
  { target, model }: RoutedTarget,
): Promise<TargetRequest | Failure> {
  const { provider } = target;
  const path = upstreamPath(provider, {
    route: facts.route.path,
    model,
    id: facts.route.id,
    query: queryOf(facts.request.url),
  });
  if (typeof path !== "string") return badRequest(path.invalidPath, "model");
  const { method } = facts.request;
  const body = facts.route.id === undefined ? encodeBody(facts.body, bodyEdits(facts, target, model)) : undefined;
  const limits = { clock: facts.clock, timeoutMs: target.timeouts.connectTimeoutMs, signal: facts.request.signal };
  let apiKey: string | undefined;
  try {
    const { apiKey: key } = provider;
    apiKey = typeof key === "function" ? await askHost(() => key(contextOf(facts, provider.name, model)), limits) : key;
  } catch (cause) {
    return noCredential(cause);
  }
  if (provider.apiKey !== undefined && (typeof apiKey !== "string" || apiKey === "")) return noCredential(undefined);
  let headers = requestHeaders({
    client: facts.request.headers,
    provider,
    protocol: facts.route.protocol,
    hasBody: body !== undefined,
    apiKey,
    clientQueryKey: new URLSearchParams(queryOf(facts.request.url)).get("key") ?? undefined,
    headersOverride: target.headersOverride,
    trace: facts.trace,
  });
  const { sign, origin, region } = provider;
  if (!("invalidHeader" in headers) && sign !== undefined) {
    const unsigned = { method, url: origin + path, headers: toRecord(headers.headers), body, region };
    try {
      headers = withSignedHeaders(headers, await askHost(() => sign(unsigned), limits));
    } catch (cause) {
      return noCredential(cause);
    }
  }
  if ("invalidHeader" in headers)
    return headers.source === "client" ? badRequest(headers.message, headers.invalidHeader) : noCredential(undefined);
  return {
    upstream: {
      method,
      origin,
      path,
      headers: headers.headers,
      body,
      connectTimeoutMs: target.timeouts.connectTimeoutMs,
    },
    clientCredential: headers.credential === "client",
    secrets: secretsOf(headers.headers, apiKey),
  };
}

/** What a host's function for the key is told. Made only where there is one: its signal is dear. */
function contextOf({ requestId, request }: TargetRequestFacts, provider: string, model: string): RequestContext {
  return { requestId, provider, model, identity: request.identity, signal: abortSignalOf(request.signal) };
}

/** Members that a target's configuration changes. The model first: `overrideParams` may name another one. */
function bodyEdits(
  { route, body }: TargetRequestFacts,
  target: RoutedTarget["target"],
  model: string,
): Map<string, unknown> {
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
