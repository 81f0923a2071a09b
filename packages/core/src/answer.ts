/** What the client gets: the head of a released response, or a failure in its own protocol. */

import type { Failure } from "./errors.js";
import type { FailedEvent, ReleasedBody, ReleasedEvent } from "./events.js";
import type { GateProtocol } from "./gate/protocols/protocol.js";
import { responseHeaders } from "./upstream/response-headers.js";
import { headerRecord, type HeaderPairs, type ResponseHeaders } from "./response-headers.js";

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

/** Longest name in a header, in characters. */
const maxTextLength = 200;
/** Longest `attempt-trail` value, in bytes. */
const maxTrailBytes = 1024;

/** The names of the gateway's own headers. */
interface OwnNames {
  readonly prefix: string;
  readonly attempts: string;
  readonly requestId: string;
  readonly resolvedModel: string;
  readonly trail: string;
}

/** Of the last prefix: nearly every process has one. */
let ownNames: OwnNames = namesOf("x-tfy-");

function namesOf(prefix: string): OwnNames {
  return {
    prefix,
    attempts: `${prefix}attempts`,
    requestId: `${prefix}request-id`,
    resolvedModel: `${prefix}resolved-model`,
    trail: `${prefix}attempt-trail`,
  };
}

/** The gateway's own headers, on success and failure alike. */
export function routingHeaders(facts: RoutingFacts): HeaderPairs {
  const { prefix, trail } = facts;
  if (ownNames.prefix !== prefix) ownNames = namesOf(prefix);
  const headers: HeaderPairs = [ownNames.attempts, String(trail.length), ownNames.requestId, facts.requestId];
  const last = trail[trail.length - 1];
  if (facts.expose && last !== undefined) {
    headers.push(ownNames.resolvedModel, headerText(last.target));
    headers.push(ownNames.trail, trailText(trail, facts.skipped ?? []));
  }
  headers.push("server-timing", `hold;dur=${tenths(facts.holdMs)}, upstream;dur=${tenths(facts.upstreamMs)}`);
  return headers;
}

/** With one digit after the point, as `toFixed(1)`, at a fraction of its cost. */
function tenths(ms: number): string {
  const count = Math.round(ms * 10);
  return `${Math.trunc(count / 10)}.${count % 10}`;
}

function trailText(trail: readonly TrailEntry[], skipped: NonNullable<RoutingFacts["skipped"]>): string {
  const [first] = trail;
  if (first !== undefined && trail.length === 1 && skipped.length === 0)
    return attemptText(first).slice(0, maxTrailBytes);
  const entries = [
    ...skipped.map(({ id, reason }) => `${headerText(id)};skipped=${reason}`),
    ...trail.map(attemptText),
  ];
  // The last attempts say most.
  while (entries.length > 1 && entries.join(", ").length > maxTrailBytes) entries.shift();
  return entries.join(", ").slice(0, maxTrailBytes);
}

function attemptText({ target, status, code, durationMs }: TrailEntry): string {
  const reason = code === undefined ? "" : `;code=${headerText(code)}`;
  return `${headerText(target)};status=${status}${reason};ms=${Math.round(durationMs)}`;
}

const notInTrail = /[^\x21-\x7e]|[,;]/;

/** Visible ASCII without the separators of the trail. */
function headerText(text: string): string {
  const clean = notInTrail.test(text) ? text.replace(/[^\x21-\x7e]|[,;]/g, "_") : text;
  return clean.length > maxTextLength ? clean.slice(0, maxTextLength) : clean;
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
  own: HeaderPairs,
  requestId: string,
): FailedEvent {
  const facts = { streaming: false, failure: true, encoded: false };
  const headers = upstream === undefined ? {} : headerRecord(responseHeaders(upstream, facts));
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
    headers: {
      ...headers,
      ...protocol.errorHeaders?.(failure),
      ...headerRecord(own),
      "content-type": "application/json",
    },
    body: protocol.errorBody(failure, requestId),
    failure,
  };
}

/** What of an answer decides its head. */
export interface ReleasedFacts {
  readonly streaming: boolean;
  readonly jsonBody: boolean;
  readonly judged: boolean;
  readonly encoded: boolean;
}

/** Head of a released response. */
export function releasedHeaders(
  upstream: ResponseHeaders,
  protocol: GateProtocol,
  { streaming, jsonBody, judged, encoded }: ReleasedFacts,
  own: HeaderPairs,
): HeaderPairs {
  // A JSON array may be a stream as well: nothing on the way must collect it.
  const headers = responseHeaders(upstream, { streaming, failure: false, encoded });
  if (judged && !jsonBody) {
    // Some servers send a stream under another type, or under none. What was judged as a stream is one.
    const at = placeOf("content-type", headers);
    if (at === -1) headers.push("content-type", protocol.contentType);
    else if (!isOfType(headers[at + 1] as string, protocol.contentType)) headers[at + 1] = protocol.contentType;
  }
  for (const part of own) headers.push(part);
  return headers;
}

function placeOf(name: string, headers: HeaderPairs): number {
  for (let at = 0; at < headers.length; at += 2) if (headers[at] === name) return at;
  return -1;
}

/** Whether a content type is the wanted one, whatever its parameters are. */
function isOfType(type: string, wanted: string): boolean {
  const end = wanted.indexOf(";");
  const expected = end === -1 ? wanted : wanted.slice(0, end);
  return type.startsWith(expected) || type.toLowerCase().startsWith(expected);
}

/** What the client gets of an answer. The record of its headers is made for those who ask for it. */
export class ReleasedAnswer implements ReleasedEvent {
  readonly type = "released";
  readonly status: number;
  readonly headerPairs: HeaderPairs;
  readonly body: ReleasedBody;
  readonly writeStallTimeoutMs: number | undefined;

  constructor(status: number, headerPairs: HeaderPairs, body: ReleasedBody, writeStallTimeoutMs?: number) {
    this.status = status;
    this.headerPairs = headerPairs;
    this.body = body;
    this.writeStallTimeoutMs = writeStallTimeoutMs;
  }

  get headers(): AnswerHeaders {
    return headerRecord(this.headerPairs);
  }
}
