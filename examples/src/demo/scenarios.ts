/** The cases of the demo: what the providers do, and what the client must receive. */

import {
  anthropicErrorFirst,
  anthropicHealthy,
  anthropicPreamble,
  chatErrorFirst,
  chatHealthy,
  chatPreamble,
  hold,
  noResponse,
  responsesErrorFirst,
  responsesFailedAfterCreated,
  responsesHealthy,
  responsesPreamble,
  sse,
} from "@first-chunk/core/testing";
import type { Script } from "@first-chunk/core/testing";
import type { Api } from "./clients.js";
import type { Outcome } from "./outcome.js";

export interface Scenario {
  readonly title: string;
  readonly story: string;
  readonly api: Api;
  readonly primary: Script;
  readonly backup: Script;
  /** Sent as `x-tfy-ttft-timeout-ms`. */
  readonly ttftTimeoutMs?: number;
  readonly expected: Outcome;
  /**
   * How often the SDK may repeat the request by itself. The gateway must see one request all the same. Default 0.
   */
  readonly maxRetries?: number;
}

const text = "Nothing reaches the client before the first chunk is known to be good.";
const ttftTimeoutMs = 250;

/** As a provider paces its events, only faster. */
const paced = (events: readonly string[], after?: Script): Script =>
  sse(events, after === undefined ? { gapMs: 4 } : { gapMs: 4, after });

const answered = (attempts: number): Outcome => ({ kind: "answer", text, attempts });

interface Streams {
  readonly healthy: readonly string[];
  readonly overloaded: readonly string[];
  readonly preamble: readonly string[];
}

const streams: Readonly<Record<Api, Streams>> = {
  Messages: { healthy: anthropicHealthy({ text }), overloaded: anthropicErrorFirst(), preamble: anthropicPreamble() },
  Responses: {
    healthy: responsesHealthy({ text }),
    overloaded: responsesErrorFirst({ code: "server_is_overloaded", message: "Our servers are overloaded." }),
    preamble: responsesPreamble(),
  },
  "Chat Completions": {
    healthy: chatHealthy({ text }),
    overloaded: chatErrorFirst({
      type: "service_unavailable_error",
      code: "server_is_overloaded",
      message: "Our servers are overloaded.",
    }),
    preamble: chatPreamble(),
  },
};

const apis = ["Messages", "Responses", "Chat Completions"] as const;

const healthy = apis.map((api): Scenario => ({
  title: "Healthy stream",
  story: "The opening is held only until the first output, then every byte passes as it came.",
  api,
  primary: paced(streams[api].healthy),
  backup: [],
  expected: answered(1),
}));

const overloaded = apis.map((api): Scenario => ({
  title: "Overload in the first event",
  story: "The primary answers 200 and says in its first event that it is overloaded.",
  api,
  primary: paced(streams[api].overloaded),
  backup: paced(streams[api].healthy),
  expected: answered(2),
}));

const failedAfterCreated: Scenario = {
  title: "response.failed after response.created",
  story: "The response is created, and fails before it has any output.",
  api: "Responses",
  primary: paced(responsesFailedAfterCreated()),
  backup: paced(streams.Responses.healthy),
  expected: answered(2),
};

const silent = apis.map((api): Scenario => ({
  title: "Silence, with a TTFT timeout",
  story: `The primary opens its stream and says no more. The client allows ${ttftTimeoutMs} ms for the first output.`,
  api,
  primary: paced(streams[api].preamble, [hold()]),
  backup: paced(streams[api].healthy),
  ttftTimeoutMs,
  expected: answered(2),
}));

const empty = apis.map((api): Scenario => ({
  title: "Empty stream",
  story: "The primary answers 200 and ends its stream without an event.",
  api,
  primary: paced([]),
  backup: paced(streams[api].healthy),
  expected: answered(2),
}));

const allFailing: readonly Scenario[] = [
  {
    title: "All targets failing",
    story: "Both are overloaded: a true status, in the body that the client's SDK parses.",
    api: "Messages",
    primary: paced(streams.Messages.overloaded),
    backup: paced(streams.Messages.overloaded),
    expected: { kind: "error", error: "ServiceUnavailableError", status: 503, code: "overloaded_error" },
  },
  {
    title: "All targets failing",
    story: "The second account has no credit left: the SDK is told not to repeat the request.",
    api: "Responses",
    primary: paced(responsesFailedAfterCreated()),
    backup: paced(responsesFailedAfterCreated({ code: "insufficient_quota", message: "You exceeded your quota." })),
    expected: { kind: "error", error: "RateLimitError", status: 429, code: "insufficient_quota" },
    maxRetries: 2,
  },
  {
    title: "All targets failing",
    story: "One ends without an event, one stays silent: 408, and the SDK is told not to repeat the request.",
    api: "Chat Completions",
    primary: paced([]),
    backup: noResponse(),
    ttftTimeoutMs,
    expected: { kind: "error", error: "APIError", status: 408, code: "ttft_timeout" },
    maxRetries: 2,
  },
];

export const scenarios: readonly Scenario[] = [
  ...healthy,
  ...overloaded,
  failedAfterCreated,
  ...silent,
  ...empty,
  ...allFailing,
];
