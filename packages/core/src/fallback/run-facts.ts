/** What a run is given: the request, understood and resolved, and the parts of the gateway that serve it. */

import type { Clock } from "../clock.js";
import type { ResolvedConfig } from "../config/resolved.js";
import type { GateProtocol } from "../gate/protocols/protocol.js";
import type { Health } from "../health/health.js";
import type { ClientSignal, GatewayRequest } from "../request.js";
import type { RequestBody } from "../routing/request-body.js";
import type { Resolution, Router } from "../routing/router.js";
import type { Route } from "../routing/routes.js";
import type { UpstreamClient } from "../upstream/upstream.js";
import type { ClockFacts } from "./attempt-clocks.js";

export interface FallbackDeps {
  readonly config: ResolvedConfig;
  readonly client: UpstreamClient;
  readonly clock: Clock;
  /** In [0, 1). */
  readonly random: () => number;
  readonly health: Health;
  readonly router: Router;
}

export interface RunFacts {
  readonly requestId: string;
  readonly route: Route;
  readonly protocol: GateProtocol;
  /** These two until the answer begins: see `forgetRequest`. */
  request: GatewayRequest;
  body: RequestBody;
  /** Of the client. */
  readonly signal: ClientSignal;
  readonly resolution: Resolution;
  /** For the records. */
  readonly metadata: Readonly<Record<string, string>> | undefined;
  readonly streaming: boolean;
  /** False: relayed ungated although it streams. */
  readonly gated: boolean;
  /** The upstream answer is read to its end even when the client leaves. */
  readonly detached: boolean;
  readonly answersToolResult: boolean;
  readonly clocks: ClockFacts;
  readonly startedAt: number;
}

const ignored = (): void => undefined;
const nobody: ClientSignal = { aborted: false, addEventListener: ignored, removeEventListener: ignored };
const sentRequest: GatewayRequest = { method: "POST", url: "/", headers: {}, body: undefined, signal: nobody };
const sentBody: RequestBody = { value: {}, bytes: undefined };

/** Nothing is sent again: a large request is not kept for as long as its answer streams. */
export function forgetRequest(facts: RunFacts): void {
  facts.request = sentRequest;
  facts.body = sentBody;
}
