/** What the client gets: the head of a released response, or a failure in its own protocol. */

import type { Failure } from "./errors.js";
import type { FailedEvent } from "./events.js";
import type { GateProtocol } from "./gate/protocols/protocol.js";
import { responseHeaders } from "./upstream/response-headers.js";
import type { ResponseHeaders } from "./response-headers.js";

export type AnswerHeaders = Record<string, string | string[]>;

/** One attempt, for the trail. */
export interface TrailEntry {
  /** `provider/model`. */
  readonly target: string;
  readonly status: number;
  /** Of the failure; undefined for the attempt that was released. */
  readonly code: string | undefined;
  readonly durationMs: number;
}

export interface RoutingFacts {
  readonly prefix: string;
  /** False: neither the model that answered nor the trail is told. */
  readonly expose: boolean;
  readonly requestId: string;
  readonly trail: readonly TrailEntry[];
  /** Targets of the model that could not serve the request, and why. */
  readonly skipped?: readonly { readonly id: string; readonly reason: string }[] | undefined;
  /** For `server-timing`, in ms. */
  readonly holdMs: number;
  readonly upstreamMs: number;
}

/** Longest `attempt-trail` value, in bytes. */
const maxTrailBytes = 1024;

/** The gateway's own headers, on success and failure alike. */
export function routingHeaders(facts: RoutingFacts): AnswerHeaders {
  const { prefix, trail } = facts;
  const headers: AnswerHeaders = {
    [`${prefix}attempts`]: String(trail.length),
    [`${prefix}request-id`]: facts.requestId,
  };
  const last = trail[trail.length - 1];
  if (facts.expose && last !== undefined) {
    headers[`${prefix}resolved-model`] = headerText(last.target);
    headers[`${prefix}attempt-trail`] = trailText(trail, facts.skipped ?? []);
  }
  headers["server-timing"] = `hold;dur=${facts.holdMs.toFixed(1)}, upstream;dur=${facts.upstreamMs.toFixed(1)}`;
  return headers;
}

function trailText(trail: readonly TrailEntry[], skipped: NonNullable<RoutingFacts["skipped"]>): string {
  const attempts = trail.map(
    ({ target, status, code, durationMs }) =>
      `${headerText(target)};status=${status}${code === undefined ? "" : `;code=${headerText(code)}`};ms=${Math.round(durationMs)}`,
  );
  const entries = [...skipped.map(({ id, reason }) => `${headerText(id)};skipped=${reason}`), ...attempts];
  // The last attempts say most.
  while (entries.length > 1 && entries.join(", ").length > maxTrailBytes) entries.shift();
  return entries.join(", ").slice(0, maxTrailBytes);
}

/** Visible ASCII without the separators of the trail. */
function headerText(text: string): string {
  return text.replace(/[^\x21-\x7e]|[,;]/g, "_").slice(0, 200);
}

/**
 * A credential that the provider refused is ours, not the client's: the client learns that the gateway failed, and
 * nothing of the key. A refusal for policy is the client's, as is that of a credential of its own.
 */
export function maskFailure(failure: Failure, clientCredential: boolean): Failure {
  const refused =
    failure.status === 401 || failure.status === 402 || (failure.status === 403 && failure.policy !== true);
  if (!refused || clientCredential || (failure.kind !== "http" && failure.kind !== "in-band")) return failure;
  return {
    kind: failure.kind,
    status: 502,
    code: "upstream_auth_error",
    message: "The gateway could not authenticate with the model provider.",
    retryable: false,
    cause: failure,
  };
}

/**
 * @param failure already masked
 * @param upstream headers of the answer that failed, where there was one
 */
export function failedEvent(
  protocol: GateProtocol,
  failure: Failure,
  upstream: ResponseHeaders | undefined,
  own: AnswerHeaders,
  requestId: string,
): FailedEvent {
  const headers =
    upstream === undefined ? {} : responseHeaders(upstream, { streaming: false, failure: true, encoded: false });
  delete headers["retry-after"];
  delete headers["retry-after-ms"];
  if ((failure.status === 429 || failure.status === 503) && failure.retryAfterMs !== undefined) {
    headers["retry-after"] = String(Math.ceil(failure.retryAfterMs / 1000));
  }
  // The official SDKs obey it: what the gateway has tried already is not multiplied by them.
  if (failure.status === 408 || !failure.retryable || failure.shouldNotRetry === true)
    headers["x-should-retry"] = "false";
  return {
    type: "failed",
    status: failure.status,
    headers: { ...headers, ...protocol.errorHeaders?.(failure), ...own, "content-type": "application/json" },
    body: protocol.errorBody(failure, requestId),
    failure,
  };
}

/** Head of a released response. */
export function releasedHeaders(
  upstream: ResponseHeaders,
  protocol: GateProtocol,
  facts: {
    readonly streaming: boolean;
    readonly jsonBody: boolean;
    readonly judged: boolean;
    readonly encoded: boolean;
  },
  own: AnswerHeaders,
): AnswerHeaders {
  // A JSON array may be a stream as well: nothing on the way must collect it.
  const headers = responseHeaders(upstream, { streaming: facts.streaming, failure: false, encoded: facts.encoded });
  const type = String(headers["content-type"] ?? "").toLowerCase();
  const expected = protocol.contentType.split(";")[0] as string;
  // Some servers send a stream under another type, or under none. What was judged as a stream is one.
  if (facts.judged && !facts.jsonBody && !type.startsWith(expected)) headers["content-type"] = protocol.contentType;
  return { ...headers, ...own };
}
