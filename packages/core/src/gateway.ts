/** Wires the parts: configuration, routing, fallback, upstream. */

import { Admission } from "./admission.js";
import { failedEvent, routingHeaders } from "./answer.js";
import { systemClock, type Clock } from "./clock.js";
import type { GatewayConfig } from "./config.js";
import { resolveConfig } from "./config/resolve.js";
import type { ResolvedConfig } from "./config/resolved.js";
import type { Failure } from "./errors.js";
import type { FailedEvent, GatewayEvent, ReleasedEvent } from "./events.js";
import { warnOfFallback } from "./fallback-warnings.js";
import { FallbackRun, type RunOwner } from "./fallback/fallback.js";
import type { FallbackDeps, RunFacts } from "./fallback/run-facts.js";
import { gatewayOverload, shutdown } from "./gate/failures.js";
import type { ProtocolName } from "./gate/protocols/protocol.js";
import { GuardedHealthStore } from "./health/guarded-store.js";
import { Health } from "./health/health.js";
import { MemoryHealthStore, type HealthStore } from "./health/store.js";
import { modelList } from "./model-list.js";
import { OpenRequests } from "./open-requests.js";
import { errorFacts } from "./observability/observed-failure.js";
import type { Recorder } from "./observability/recorder.js";
import { endUnserved, Records } from "./observability/records.js";
import type { ClientSignal, GatewayRequest } from "./request.js";
import { isFailure, loopDetected } from "./request-failures.js";
import { Router } from "./routing/router.js";
import { matchRoute, type Route } from "./routing/routes.js";
import { protocolOf, understand } from "./understand.js";
import { createUndiciClient } from "./upstream/client.js";
import { decodingClient } from "./upstream/decoding.js";
import type { UpstreamClient } from "./upstream/upstream.js";

/** Parts that tests replace. */
export interface GatewayDeps {
  /** Default: `performance.now()` and `setTimeout`. */
  readonly clock?: Clock;
  /** Default: undici over `config.dispatcher` or own pools. */
  readonly client?: UpstreamClient;
  /** In [0, 1), for jitter and weights. Default: `Math.random`. */
  readonly random?: () => number;
  /** Epoch ms, read once: from there on the clock counts. Default: `Date.now`. */
  readonly wallClock?: () => number;
  /** Default: `process.env`. Read once. */
  readonly env?: Readonly<Record<string, string | undefined>>;
}

export interface CloseOptions {
  /** How long open requests may go on, in ms. Default: 10 000. */
  readonly graceMs?: number;
}

const defaultGraceMs = 10_000;
/** How long requests that were ended may take to tell their clients. A reader that never reads is not waited for. */
const farewellMs = 1_000;

/** Brands survive two copies of this package in one process, which `instanceof` does not. */
const gatewayBrand = Symbol.for("first-chunk.Gateway");

/** Which API a request is for. Handed back to {@link Gateway.refuse}. */
export interface MatchedRoute {
  readonly protocol: ProtocolName;
  /** Of the API, with its version prefix: `/v1/messages`, `/model/{model}/converse`. */
  readonly path: string;
}

export interface Gateway {
  /**
   * Which API a request is for, or undefined: then it is not the gateway's. Looks at method and path only.
   *
   * @param mounted below a mount path: the routes without `/v1` match too
   */
  match(method: string, url: string, mounted: boolean): MatchedRoute | undefined;
  /** Yields exactly one `released` or `failed`, and nothing after it; neither where the client left before. */
  handle(request: GatewayRequest): AsyncIterable<GatewayEvent>;
  /**
   * The last of these events alone, undefined where the client left before. For adapters: nothing is resumed on the way.
   *
   * @param route what `match` gave for the request; default: it is matched again
   */
  answer(request: GatewayRequest, route?: MatchedRoute): Promise<ReleasedEvent | FailedEvent | undefined>;
  /** The answer to a request that an adapter itself refuses, in the client's protocol. */
  refuse(route: MatchedRoute, failure: Failure): FailedEvent;
  readonly limits: { readonly maxRequestBytes: number };
  readonly timeouts: { readonly writeStallTimeoutMs: number };
  /** Why a request that comes now would be refused, whatever it holds: asked before its body is read. */
  refusal(): Failure | undefined;
  /**
   * Refuses new requests and those that wait for a place with a 503, lets the open ones end, and ends those that have not
   * after `graceMs` (default 10 000; 0: at once): an answer that has not begun becomes a 503, a stream breaks off as
   * `onMidStreamFailure` says. Then ends own sockets. The first call counts; the others wait with it.
   */
  close(options?: CloseOptions): Promise<void>;
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

type Begun = FallbackRun | ReleasedEvent | FailedEvent | undefined;

function answerOf(begun: Begun): Promise<ReleasedEvent | FailedEvent | undefined> {
  return begun instanceof FallbackRun ? begun.answer() : Promise.resolve(begun);
}

class DefaultGateway implements Gateway, RunOwner {
  readonly #config: ResolvedConfig;
  readonly #deps: FallbackDeps;
  readonly #served: ReadonlySet<ProtocolName>;
  /** Epoch ms. */
  readonly #since: number;
  readonly #records: Records;
  readonly #open = new OpenRequests();
  readonly #admission: Admission;
  #closing: Promise<void> | undefined;

  constructor(config: ResolvedConfig, deps: GatewayDeps) {
    this.#config = config;
    this.#records = new Records(config);
    const { clock = systemClock, random = Math.random, wallClock = Date.now } = deps;
    const store = healthStore(config);
    const health = new Health({
      cooldown: config.cooldown,
      store,
      clock,
      epochOffset: wallClock() - clock.now(),
      measures: needsLatency(config),
    });
    this.#deps = {
      config,
      clock,
      client: decodingClient(deps.client ?? createUndiciClient({ dispatcher: config.dispatcher })),
      random,
      health,
      router: new Router({ config, health, store, random }),
    };
    this.#since = health.now();
    warnOfFallback(config);
    this.#admission = new Admission(config.limits, this.#deps.clock);
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
    const begun = this.#begin(request);
    const ready = begun instanceof Promise ? await begun : begun;
    if (ready instanceof FallbackRun) yield* ready.events();
    else if (ready !== undefined) yield ready;
  }

  answer(request: GatewayRequest, route?: MatchedRoute): Promise<ReleasedEvent | FailedEvent | undefined> {
    try {
      const begun = this.#begin(request, route as Route | undefined);
      // Where nobody has to wait the request is sent in this turn.
      return begun instanceof Promise ? begun.then(answerOf) : answerOf(begun);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  /** A run, or the answer where none is needed; undefined where the client left while it waited for a place. */
  #begin(request: GatewayRequest, matched?: Route): Begun | Promise<Begun> {
    const route = matched ?? this.match(request.method, request.url, request.mounted ?? false);
    if (route === undefined) throw new TypeError("the request is not for this gateway: call match() first");
    if (this.#closing !== undefined) return this.refuse(route, shutdown());
    if (request.peer !== undefined && this.#deps.client.owns?.(request.peer) === true)
      return this.refuse(route, loopDetected());
    if (route.purpose === "list-models") return this.#listModels(request);
    const facts = this.#records.guard(route.protocol, () => understand(this.#deps, route, request));
    if (isFailure(facts)) return this.refuse(route, facts);
    const recorder = this.#records.begin({
      requestId: facts.requestId,
      protocol: route.protocol,
      streaming: facts.streaming,
      requestedModel: facts.resolution.name,
      rule: facts.resolution.rule,
      subject: request.identity?.subject,
      metadata: facts.metadata,
    });
    return this.#admission.tryEnter() ? this.#startRun(facts, recorder) : this.#beginLater(facts, recorder);
  }

  async #beginLater(facts: RunFacts, recorder: Recorder): Promise<Begun> {
    const refused = await this.#waitForPlace(facts.signal);
    return refused === undefined ? this.#startRun(facts, recorder) : this.#turnAway(facts, recorder, refused);
  }

  /** Undefined with a place among those that are served at once. */
  async #waitForPlace(signal: ClientSignal): Promise<Failure | undefined> {
    const refused = await this.#admission.wait(signal);
    if (refused !== undefined || this.#closing === undefined) return refused;
    // Let in by a request that ended in the same turn in which the gateway began to close.
    this.#admission.leave();
    return shutdown();
  }

  /** With a place. */
  #startRun(facts: RunFacts, recorder: Recorder): FallbackRun {
    const run = new FallbackRun(this.#deps, facts, recorder, this);
    this.#open.add(run);
    return run;
  }

  // As the owner of its runs

  ended(run: FallbackRun): void {
    if (!run.dropping) this.#open.delete(run);
    this.#admission.leave();
  }

  dropped(run: FallbackRun): void {
    this.#open.delete(run);
  }

  /** No place was free, or the client left while it waited for one. */
  #turnAway(facts: RunFacts, recorder: Recorder, failure: Failure): FailedEvent | undefined {
    endUnserved(recorder, failure, this.#deps.clock.now() - facts.startedAt);
    return failure.kind === "client-abort" ? undefined : this.#refusal(facts.route, failure, facts.requestId);
  }

  #listModels(request: GatewayRequest): ReleasedEvent {
    const own = [`${this.#config.headerPrefix}request-id`, crypto.randomUUID()];
    return modelList(this.#config.models, request, this.#since, own);
  }

  refuse(route: MatchedRoute, failure: Failure): FailedEvent {
    const requestId = crypto.randomUUID();
    this.#records.refused(route.protocol, requestId, failure);
    return this.#refusal(route, failure, requestId);
  }

  #refusal(route: MatchedRoute, failure: Failure, requestId: string): FailedEvent {
    const { headerPrefix: prefix, exposeRouting: expose } = this.#config;
    const own = routingHeaders({ prefix, expose, requestId, trail: [], holdMs: 0, upstreamMs: 0 });
    const event = failedEvent(protocolOf(route), failure, undefined, own, requestId);
    // A client that keeps its connection would bring its next request to a gateway that is gone.
    return failure.kind === "shutdown" ? { ...event, headers: { ...event.headers, connection: "close" } } : event;
  }

  refusal(): Failure | undefined {
    if (this.#closing !== undefined) return shutdown();
    return this.#admission.full ? gatewayOverload() : undefined;
  }

  close({ graceMs = defaultGraceMs }: CloseOptions = {}): Promise<void> {
    if (!(graceMs >= 0)) return Promise.reject(new TypeError("graceMs: must be a number of milliseconds, 0 or more"));
    this.#closing ??= this.#close(graceMs);
    return this.#closing;
  }

  async #close(graceMs: number): Promise<void> {
    const { clock, client } = this.#deps;
    this.#admission.refuseWaiting(shutdown());
    await this.#open.settle(clock, graceMs);
    this.#open.stop(shutdown());
    await this.#open.settle(clock, farewellMs);
    await client.close();
  }
}

function healthStore({ store, logger }: ResolvedConfig): HealthStore {
  if (store === undefined) return new MemoryHealthStore();
  return new GuardedHealthStore(store, (error) =>
    logger?.error({ cause: errorFacts(error) }, "the health store failed"),
  );
}

/** Whether any route goes by how fast the targets are. */
function needsLatency({ models, rules }: ResolvedConfig): boolean {
  return [...models, ...rules].some(
    ({ routing, targets }) => routing === "latency" || targets.some(({ slaCutoff }) => slaCutoff !== undefined),
  );
}
