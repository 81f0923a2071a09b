/** A request, read and resolved: everything that is decided before an upstream is called. */

import type { Clock } from "./clock.js";
import type { ResolvedConfig } from "./config/resolved.js";
import type { Failure } from "./errors.js";
import type { RunFacts } from "./fallback/run-facts.js";
import type { GateProtocol } from "./gate/protocols/protocol.js";
import { protocols } from "./gate/protocols/protocols.js";
import type { GatewayRequest } from "./request.js";
import { apiNotServed, badRequest, isFailure } from "./request-failures.js";
import { readControlHeaders } from "./routing/control-headers.js";
import { readMetadata, type Metadata } from "./routing/metadata.js";
import {
  answersToolResult,
  emptyBody,
  isStreaming,
  modelKey,
  readRequestBody,
  type RequestBody,
} from "./routing/request-body.js";
import type { Resolution, Router } from "./routing/router.js";
import { queryOf, type Route } from "./routing/routes.js";

export interface UnderstandParts {
  readonly config: ResolvedConfig;
  readonly router: Router;
  readonly clock: Clock;
}

/** @returns the facts of the request, or the failure to answer with */
export function understand(parts: UnderstandParts, route: Route, request: GatewayRequest): RunFacts | Failure {
  const startedAt = parts.clock.now();
  const stored = route.purpose === "stored-response";
  const body = stored ? emptyBody : readRequestBody(request.body);
  if (isFailure(body)) return body;
  const { value } = body;
  // A server that takes "true" for true would stream past the gate.
  if (!isSwitch(value["stream"])) return badRequest("The field `stream` must be true or false.", "stream");
  const streaming = stored ? asksForStream(request.url) : (route.streaming ?? isStreaming(route.protocol, value));
  const headers = readControlHeaders(request.headers, parts.config.headerPrefix, streaming);
  if (isFailure(headers)) return headers;
  const metadata = readMetadata(request.headers, parts.config.headerPrefix, request.identity);
  if (isFailure(metadata)) return metadata;
  const resolution = resolve(parts, { route, request, body, metadata, providerName: headers.providerName });
  if (isFailure(resolution)) return resolution;
  const background = route.issuesIds === true && value["background"] === true;
  return {
    requestId: crypto.randomUUID(),
    route,
    protocol: protocolOf(route),
    request,
    body,
    signal: request.signal,
    resolution,
    metadata: metadata.size === 0 ? undefined : Object.fromEntries(metadata),
    streaming,
    gated: streaming && !background && route.relayed !== true,
    detached: background,
    answersToolResult: answersToolResult(route.protocol, value),
    clocks: {
      streaming,
      ttftTimeoutMs: headers.ttftTimeoutMs,
      requestTimeoutMs: headers.requestTimeoutMs,
      startedAt,
    },
    startedAt,
  };
}

interface Parsed {
  readonly route: Route;
  readonly request: GatewayRequest;
  readonly body: RequestBody;
  readonly metadata: Metadata;
  readonly providerName: string | undefined;
}

function resolve(
  { router }: UnderstandParts,
  { route, request, body, metadata, providerName }: Parsed,
): Resolution | Failure {
  const api = `${request.method} ${route.path}`;
  if (route.purpose === "stored-response")
    return router.resolveStored(route.id ?? "", route.protocol) ?? apiNotServed("", api);
  const model = route.model ?? body.value[modelKey(route.protocol, body.value)];
  if (typeof model !== "string" || model === "") {
    return badRequest("The field `model` is missing. Name the model as a string.", "model");
  }
  return router.resolve({
    requested: providerName === undefined ? model : `${providerName}/${model}`,
    protocol: route.protocol,
    api,
    headers: request.headers,
    body: body.value,
    metadata,
    subject: request.identity?.subject,
  });
}

function isSwitch(value: unknown): boolean {
  return value === undefined || value === null || typeof value === "boolean";
}

/** A stored response may be streamed again. */
function asksForStream(url: string): boolean {
  return new URLSearchParams(queryOf(url)).get("stream") === "true";
}

export function protocolOf(route: Pick<Route, "protocol">): GateProtocol {
  const protocol = protocols.get(route.protocol);
  if (protocol === undefined) throw new TypeError(`there is no protocol ${route.protocol}`);
  return protocol;
}
