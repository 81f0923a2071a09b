/** Wires the parts: configuration, routing, fallback, upstream. */

import { failedEvent, routingHeaders } from "./answer.js";
import { systemClock, type Clock } from "./clock.js";
import type { GatewayConfig } from "./config.js";
import { resolveConfig } from "./config/resolve.js";
import type { ResolvedConfig } from "./config/resolved.js";
import type { Failure } from "./errors.js";
import type { FailedEvent, GatewayEvent } from "./events.js";
import { FallbackRun, type FallbackDeps, type RunFacts } from "./fallback/fallback.js";
import { shutdown } from "./gate/failures.js";
import type { GateProtocol, ProtocolName } from "./gate/protocols/protocol.js";
import { protocols } from "./gate/protocols/protocols.js";
import { Recorder } from "./observability/recorder.js";
import type { GatewayRequest } from "./request.js";
import { badRequest, isFailure } from "./request-failures.js";
import { readControlHeaders } from "./routing/control-headers.js";
import { answersToolResult, isStreaming, modelKey, readRequestBody } from "./routing/request-body.js";
import { resolveModel } from "./routing/resolve.js";
import { matchRoute, type Route } from "./routing/routes.js";
import { createUndiciClient } from "./upstream/client.js";
import { decodingClient } from "./upstream/decoding.js";
import type { UpstreamClient } from "./upstream/upstream.js";

/** Parts that tests replace. */
export interface GatewayDeps {
  /** Default: `performance.now()` and `setTimeout`. */
  readonly clock?: Clock;
  /** Default: undici over `config.dispatcher` or own pools. */
  readonly client?: UpstreamClient;
  /** In [0, 1), for jitter. Default: `Math.random`. */
  readonly random?: () => number;
  /** Default: `process.env`. Read once. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

/** Brands survive two copies of this package in one process, which `instanceof` does not. */
const gatewayBrand = Symbol.for("first-chunk.Gateway");

export interface Gateway {
  /**
   * Which API a request is for, or undefined: then it is not the gateway's. Looks at method and path only.
   *
   * @param mounted below a mount path: the routes without `/v1` match too
   */
  match(method: string, url: string, mounted: boolean): Route | undefined;
  /** Yields exactly one `released` or `failed`, and nothing after it; neither where the client left before. */
  handle(request: GatewayRequest): AsyncIterable<GatewayEvent>;
  /** The answer to a request that an adapter itself refuses, in the client's protocol. */
  refuse(route: object, failure: Failure): FailedEvent;
  readonly limits: { readonly maxRequestBytes: number };
  readonly timeouts: { readonly writeStallTimeoutMs: number };
  /** Refuses new requests with a 503, waits until the open ones have ended, then ends own sockets. Idempotent. */
  close(): Promise<void>;
}

/**
 * @throws ConfigError which names the path in the configuration and what would be right
 */
export function createGateway(config: GatewayConfig, deps: GatewayDeps = {}): Gateway {
  return new DefaultGateway(resolveConfig(config, deps.env ?? process.env), deps);
}

export function isGateway(value: unknown): value is Gateway {
  return typeof value === "object" && value !== null && gatewayBrand in value;
}

class DefaultGateway implements Gateway {
  readonly #config: ResolvedConfig;
  readonly #deps: FallbackDeps;
  readonly #served: ReadonlySet<ProtocolName>;
  readonly #open = new Set<object>();
  #closing: Promise<void> | undefined;
  #onIdle: (() => void) | undefined;

  constructor(config: ResolvedConfig, deps: GatewayDeps) {
    this.#config = config;
    this.#deps = {
      config,
      clock: deps.clock ?? systemClock,
      client: decodingClient(deps.client ?? createUndiciClient({ dispatcher: config.dispatcher as never })),
      random: deps.random ?? Math.random,
    };
    this.#served = new Set([...config.providers.values()].flatMap((provider) => [...provider.protocols]));
    Object.defineProperty(this, gatewayBrand, { value: true });
  }

  get limits(): { readonly maxRequestBytes: number } {
    return this.#config.limits;
  }

  get timeouts(): { readonly writeStallTimeoutMs: number } {
    return this.#config.defaults.timeouts;
  }

  match(method: string, url: string, mounted: boolean): Route | undefined {
    return matchRoute(method, url, mounted, this.#served);
  }

  async *handle(request: GatewayRequest): AsyncGenerator<GatewayEvent, void, undefined> {
    const route = this.match(request.method, request.url, request.mounted ?? false);
    if (route === undefined) throw new TypeError("the request is not for this gateway: call match() first");
    if (this.#closing !== undefined) return yield this.refuse(route, shutdown());
    const facts = this.#understand(route, request);
    if (isFailure(facts)) return yield this.refuse(route, facts);
    const done = this.#track();
    const recorder = new Recorder([...this.#config.observers, { onEvent: (event) => event.type === "request-end" && done() }], facts.requestId);
    yield* this.#run({ ...facts, recorder });
  }

  async *#run(facts: RunFacts): AsyncGenerator<GatewayEvent, void, undefined> {
    facts.recorder.record({
      type: "request-start",
      protocol: facts.route.protocol,
      streaming: facts.streaming,
      requestedModel: facts.resolution.name,
      subject: facts.request.identity?.subject,
    });
    yield* new FallbackRun(this.#deps, facts).events();
  }

  refuse(route: object, failure: Failure): FailedEvent {
    const requestId = crypto.randomUUID();
    const { headerPrefix: prefix, exposeRouting: expose } = this.#config;
    const own = routingHeaders({ prefix, expose, requestId, trail: [], holdMs: 0, upstreamMs: 0 });
    return failedEvent(protocolOf(route as Route), failure, undefined, own, requestId);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (this.#open.size > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve));
    await this.#deps.client.close();
  }

  /** @returns ends the tracking */
  #track(): () => void {
    const token = {};
    this.#open.add(token);
    return () => {
      this.#open.delete(token);
      if (this.#open.size === 0) this.#onIdle?.();
    };
  }

  /** Everything that is decided before an upstream is called, or the failure to answer with. */
  #understand(route: Route, request: GatewayRequest): Omit<RunFacts, "recorder"> | Failure {
    const body = readRequestBody(request.body);
    if (isFailure(body)) return body;
    const { value } = body;
    const streaming = route.streaming ?? isStreaming(route.protocol, value);
    const headers = readControlHeaders(request.headers, this.#config.headerPrefix, streaming);
    if (isFailure(headers)) return headers;
    const model = route.model ?? value[modelKey(route.protocol, value)];
    if (typeof model !== "string" || model === "") return badRequest("The field `model` is missing. Name the model as a string.", "model");
    const resolution = resolveModel(this.#config, model, route.protocol, `${request.method} ${route.path}`);
    if (isFailure(resolution)) return resolution;
    const startedAt = this.#deps.clock.now();
    const { totalTimeoutMs } = resolution.timeouts;
    const background = route.protocol === "openai-responses" && value["background"] === true;
    return {
      requestId: crypto.randomUUID(),
      route,
      protocol: protocolOf(route),
      request,
      body,
      resolution,
      streaming,
      gated: streaming && !background,
      detached: background,
      answersToolResult: answersToolResult(route.protocol, value),
      clocks: {
        streaming,
        ttftTimeoutMs: headers.ttftTimeoutMs,
        requestTimeoutMs: headers.requestTimeoutMs,
        total: totalTimeoutMs === undefined ? undefined : { at: startedAt + totalTimeoutMs, timeoutMs: totalTimeoutMs },
      },
      startedAt,
    };
  }
}

function protocolOf(route: Route): GateProtocol {
  const protocol = protocols.get(route.protocol);
  if (protocol === undefined) throw new TypeError(`there is no protocol ${route.protocol}`);
  return protocol;
}
