/** One request of `node:http` from its head to its answer: who calls, what the body says, and what the gateway makes of it. */

import { AsyncResource } from "node:async_hooks";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Clock } from "../clock.js";
import { EndOfTurn, type Task } from "../end-of-turn.js";
import type { Failure } from "../errors.js";
import type { FailedEvent, GatewayEvent, ReleasedEvent } from "../events.js";
import type { ClientSignal, GatewayRequest, Identity, Peer } from "../request.js";
import { readIdentity } from "./identify.js";
import type { IdentifyResult } from "./identify.js";
import type { BodyOutcome, BodyReceiver } from "./body-outcome.js";
import { readRequestBody } from "./read-body.js";
import type { ParsedSource } from "./read-body.js";
import { checkFraming } from "./request-head.js";
import type { ServedGateway } from "./served-gateway.js";

export interface Incoming {
  readonly req: IncomingMessage;
  /** What `gateway.match` gave. */
  readonly route: object;
  /** Path and query below the mount point. */
  readonly url: string;
  readonly mounted: boolean;
  /** Aborts when the client leaves. */
  readonly signal: ClientSignal;
  /** Where body parsers leave what they have read. */
  readonly source: ParsedSource;
  /** Default: nobody in particular calls. */
  readonly identify?: (() => IdentifyResult | Promise<IdentifyResult>) | undefined;
  readonly clock: Clock;
}

/** How an adapter answers. One of `answer`, `leave` and `fail` is called, once; `fail` also where one of the others threw. */
export interface Responder {
  /** False: the client is gone, or somebody else has answered it. Asked before each step that costs something. */
  canAnswer(): boolean;
  answer(event: ReleasedEvent | FailedEvent): void;
  /** `identify` threw, or there is a bug. */
  fail(error: unknown): void;
  /** Nobody is answered: `canAnswer` said no, or the client left while the gateway was at work. */
  leave(): void;
}

/** Requests whose body has been read. */
const arrivals = new EndOfTurn();

/** No async functions on the way: they would cost a request more than reading it. */
export function serveRequest(gateway: ServedGateway, incoming: Incoming, responder: Responder): void {
  new Serving(gateway, incoming, responder).start();
}

/**
 * Its own `AsyncResource`: the end of a body is told in the context of the HTTP parser, and what follows belongs into that
 * of the host's middleware, with its `AsyncLocalStorage` and its open span.
 */
class Serving extends AsyncResource implements BodyReceiver, Task {
  readonly #gateway: ServedGateway;
  readonly #incoming: Incoming;
  readonly #responder: Responder;
  #identity: Identity | undefined;
  /** Until it is dealt with. */
  #read: BodyOutcome | undefined;

  constructor(gateway: ServedGateway, incoming: Incoming, responder: Responder) {
    super("FirstChunkRequest");
    this.#gateway = gateway;
    this.#incoming = incoming;
    this.#responder = responder;
  }

  /** The caller is identified before its body is read, so that a stranger cannot make the gateway hold one. */
  start(): void {
    try {
      if (this.#leave()) return;
      const refused = checkFraming(this.#incoming.req) ?? this.#gateway.refusal?.();
      if (refused !== undefined) return this.#refuse(refused);
      const who = this.#incoming.identify?.();
      if (!isPromiseLike(who)) return this.#identified(who);
      Promise.resolve(who)
        .then((result) => this.#identified(result))
        .catch((error: unknown) => this.#responder.fail(error));
    } catch (error) {
      this.#responder.fail(error);
    }
  }

  #identified(result: IdentifyResult): void {
    const who = readIdentity(result);
    if ("failure" in who) return this.#refuse(who.failure);
    this.#identity = who.identity;
    const { req, source, clock } = this.#incoming;
    readRequestBody(req, { limit: this.#gateway.limits.maxRequestBytes, source, clock }, this);
  }

  onBody(read: BodyOutcome): void {
    this.#read = read;
    if (!arrivals.put(this)) this.run();
  }

  run(): void {
    const read = this.#read as BodyOutcome;
    this.#read = undefined;
    this.runInAsyncScope(this.#goOn, this, read);
  }

  #goOn(read: BodyOutcome): void {
    try {
      if ("failure" in read) return this.#refuse(read.failure);
      if (this.#leave()) return;
      this.#ask(read.body);
    } catch (error) {
      this.#responder.fail(error);
    }
  }

  #ask(body: GatewayRequest["body"]): void {
    const { req, url, mounted, signal, route } = this.#incoming;
    const { method = "GET", headers } = req;
    const identity = this.#identity;
    const request = { method, url, mounted, headers, body, identity, peer: new SocketPeer(req.socket), signal };
    const { answer } = this.#gateway;
    const answering =
      answer === undefined
        ? lastEvent(this.#gateway.handle(request), signal)
        : answer.call(this.#gateway, request, route);
    answering
      .then((event) => {
        if (event !== undefined) return this.#responder.answer(event);
        // The client has left, which an adapter may have to tell others.
        this.#responder.canAnswer();
        this.#responder.leave();
      })
      .catch((error: unknown) => this.#responder.fail(error));
  }

  /** True where nobody is answered any more. */
  #leave(): boolean {
    if (this.#responder.canAnswer()) return false;
    this.#responder.leave();
    return true;
  }

  #refuse(failure: Failure): void {
    const { req, route } = this.#incoming;
    const answer = (): void => this.#responder.answer(this.#gateway.refuse(route, failure));
    if (req.complete) return answer();
    // In the next turn of the event loop the body is complete if it came in one packet with the head, and the refusal
    // does not have to close the connection.
    setImmediate(() => {
      try {
        answer();
      } catch (error) {
        this.#responder.fail(error);
      }
    });
  }
}

/**
 * The one `released` or `failed` event of a request; undefined where the client has left, so that there is nobody to
 * answer. The body of a released answer goes on by itself.
 *
 * @throws an Error when the events end without an answer for a client that waits for one
 */
async function lastEvent(
  events: AsyncIterable<GatewayEvent>,
  signal: ClientSignal,
): Promise<ReleasedEvent | FailedEvent | undefined> {
  const iterator = events[Symbol.asyncIterator]();
  for (;;) {
    const next = await iterator.next();
    if (next.done === true) {
      if (signal.aborted) return undefined;
      throw new Error("The gateway ended a request without an answer");
    }
    const event = next.value;
    if (event.type !== "released" && event.type !== "failed") continue;
    // To its end, not `return()`, and not awaited: that may wait for a provider that is silent.
    iterator.next().catch(ignore);
    return event;
  }
}

function ignore(): void {
  // The answer is given; nothing after it can change it.
}

function isPromiseLike<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === "object" && value !== null && "then" in value;
}

/** Asks the socket when it is asked: of nearly every client the port alone. */
class SocketPeer implements Peer {
  readonly #socket: Socket;
  constructor(socket: Socket) {
    this.#socket = socket;
  }
  get address(): string {
    return this.#socket.remoteAddress ?? "";
  }
  get port(): number {
    return this.#socket.remotePort ?? 0;
  }
  get serverAddress(): string {
    return this.#socket.localAddress ?? "";
  }
  get serverPort(): number {
    return this.#socket.localPort ?? 0;
  }
}
