/**
 * One request as undici sees it. The class is the handler itself and its own `AsyncResource`: one object per request,
 * no closures, and the caller's `AsyncLocalStorage` in every handler call (undici would call in the context of whoever
 * opened the socket).
 */

import { AsyncResource } from "node:async_hooks";
import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import type { Connection, ConnectionUser } from "./connections.js";
import { abortedError, restoreCode } from "./connections.js";
import type { ResponseHeaders } from "../response-headers.js";
import type { UpstreamCall, UpstreamHandler, UpstreamRequest } from "./upstream.js";

/** Sends a call to undici: once, and once more when the socket had gone stale. */
export interface CallSender {
  /** Whether a call may be sent again over a connection of its own. */
  readonly canResend: boolean;
  resend(call: UndiciCall): void;
}

/** 1xx answers to one request. A real server sends one or two. */
const maxInformational = 32;

/** One read of a socket is no larger. */
const maxJoinedBytes = 65_536;

const nothing: Uint8Array[] = [];

/** Codes of a connection that died under a request. */
const deadConnection: ReadonlySet<string> = new Set(["UND_ERR_SOCKET", "ECONNRESET", "ECONNABORTED", "EPIPE"]);

export class UndiciCall extends AsyncResource implements UpstreamCall, ConnectionUser, Dispatcher.DispatchHandler {
  request: UpstreamRequest;
  readonly #sender: CallSender;
  /** Undefined once nothing more may be called. */
  #handler: UpstreamHandler | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #connection: Connection | undefined;
  #paused = false;
  #dispatching = false;
  #refused = false;
  #toldConnected = false;
  /** The present try runs on a socket that carried a request before. */
  #reused = false;
  #informational = 0;
  /** A byte of a response was seen. */
  #answered = false;
  /** The first chunk was handed over. */
  #begun = false;
  /** Chunks to be joined, and the sum of their lengths. */
  #held: Uint8Array[] = nothing;
  #heldBytes = 0;
  /** The answer ended while the reader paused. */
  #ended = false;

  constructor(request: UpstreamRequest, handler: UpstreamHandler, sender: CallSender) {
    super("FirstChunkUpstreamCall");
    this.request = request;
    this.#handler = handler;
    this.#sender = sender;
  }

  get paused(): boolean {
    return this.#paused && this.#controller !== undefined;
  }

  get refused(): boolean {
    return this.#refused;
  }

  /** Hands the call to a dispatcher. What is thrown or reported before this returns arrives later, at `onError`. */
  dispatchTo(dispatcher: Dispatcher): void {
    const { origin, path, method, headers, body } = this.request;
    this.#dispatching = true;
    try {
      const options = {
        origin,
        path,
        method,
        headers: headers as string[],
        body: body ?? null,
        headersTimeout: 0,
        bodyTimeout: 0,
        user: this,
      };
      dispatcher.dispatch(options, this);
    } catch (error) {
      this.failLater(asError(error));
    } finally {
      this.#dispatching = false;
    }
  }

  /** Ends the call with an error after the present code has run. */
  failLater(error: Error): void {
    this.#refused = true;
    queueMicrotask(() => this.#fail(error));
  }

  abort(): void {
    if (this.#handler === undefined) return;
    const controller = this.#controller;
    const connecting = this.#connection?.connecting;
    this.#finish();
    if (controller !== undefined) controller.abort(abortedError);
    // Before the request starts undici has nothing to abort with; `onRequestStart` refuses it should it come to that.
    else connecting?.destroy(abortedError);
  }

  pause(): void {
    if (this.#handler === undefined || this.#paused) return;
    this.#paused = true;
    this.#controller?.pause();
  }

  resume(): void {
    if (this.#handler === undefined || !this.#paused) return;
    this.#paused = false;
    // Not at once: undici's parser must not be resumed from within a callback of any of its parsers.
    if (this.#controller !== undefined || this.#ended) process.nextTick(resumeReading, this);
  }

  continueReading(): void {
    this.deliverHeld();
    if (this.#paused) return;
    if (this.#ended) this.#end();
    else this.#controller?.resume();
  }

  // As the user of a connection

  attach(connection: Connection): void {
    this.#connection = connection;
    connection.user = this;
  }

  flush(): void {
    this.#controller?.resume();
  }

  // As undici's handler

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#handler === undefined) {
      controller.abort(abortedError);
      return;
    }
    this.#controller = controller;
    if (this.#connection !== undefined) {
      this.#reused = this.#connection.requests > 0;
      this.#connection.requests += 1;
    }
    if (this.#paused) controller.pause();
    if (this.#toldConnected) return;
    this.#toldConnected = true;
    this.runInAsyncScope(tellConnected, undefined, this.#handler);
  }

  /** The first byte of a response, where undici tells it; a broken head is an answer too. */
  onResponseStarted(): void {
    this.#answered = true;
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    this.#answered = true;
    if (this.#handler === undefined) return;
    if (status < 200) {
      this.#informational += 1;
      // They are no bytes of an answer, so no other limit would end a flood of them before the idle timeout.
      if (this.#informational > maxInformational)
        controller.abort(new Error("The provider sent nothing but informational answers"));
      return;
    }
    // It is not sent again.
    this.request = { ...this.request, body: undefined };
    this.runInAsyncScope(tellHead, undefined, this.#handler, status, headers);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    // Resuming a parser can yield an empty chunk.
    if (chunk.length === 0 || this.#handler === undefined) return;
    if (this.#begun || this.#paused) this.#hold(chunk);
    else this.#deliver(chunk);
  }

  /** The first chunk of an answer must not wait; the others of one read are one to all that follows, and one write. */
  #hold(chunk: Uint8Array): void {
    if (this.#heldBytes + chunk.length > maxJoinedBytes && !this.#paused) this.#flush();
    if (this.#heldBytes > 0) this.#held.push(chunk);
    else {
      this.#held = [chunk];
      process.nextTick(deliverHeld, this);
    }
    this.#heldBytes += chunk.length;
  }

  /** In a tick of its own, where nobody else would catch what a handler throws. */
  deliverHeld(): void {
    if (this.#paused) return;
    try {
      this.#flush();
    } catch (error) {
      if (this.#controller === undefined) this.#fail(asError(error));
      else this.#controller.abort(asError(error));
    }
  }

  #flush(): void {
    if (this.#heldBytes === 0) return;
    const chunk = joinChunks(this.#held, this.#heldBytes);
    this.#dropHeld();
    this.#deliver(chunk);
  }

  #deliver(chunk: Uint8Array): void {
    if (this.#handler === undefined) return;
    this.#begun = true;
    this.runInAsyncScope(tellData, undefined, this.#handler, chunk);
  }

  #dropHeld(): void {
    this.#held = nothing;
    this.#heldBytes = 0;
  }

  onResponseEnd(): void {
    if (!this.#paused) this.#flush();
    if (this.#paused) {
      this.#ended = true;
      this.#release();
    } else this.#end();
  }

  #end(): void {
    const handler = this.#finish();
    if (handler !== undefined) this.runInAsyncScope(tellEnd, undefined, handler);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#dispatching) {
      this.failLater(asError(error));
      return;
    }
    let cause = error;
    try {
      this.#flush();
    } catch (bug) {
      cause = bug as Error;
    }
    this.#fail(asError(cause));
  }

  #fail(error: Error): void {
    if (this.#handler === undefined) return;
    restoreCode(error);
    if (this.#isStale(error)) {
      this.#release();
      this.#sender.resend(this);
      return;
    }
    const handler = this.#finish();
    if (handler !== undefined) this.runInAsyncScope(tellError, undefined, handler, error);
  }

  /**
   * The provider closed an idle connection while the request was on its way: nothing is wrong with the provider, and
   * nothing of an answer was seen. On a fresh socket, such as that of the second try, the same error is the provider's
   * failure.
   */
  #isStale(error: Error & { code?: string }): boolean {
    if (this.#answered || !this.#sender.canResend) return false;
    if (error.code === undefined || !deadConnection.has(error.code)) return false;
    // An idle socket that is reset before the request started fails the request too.
    const idle = this.#controller === undefined && (this.#connection?.requests ?? 0) > 0;
    return this.#reused || idle;
  }

  #release(): void {
    if (this.#connection?.user === this) this.#connection.user = undefined;
    this.#connection = undefined;
    this.#controller = undefined;
  }

  #finish(): UpstreamHandler | undefined {
    const handler = this.#handler;
    this.#handler = undefined;
    this.#dropHeld();
    this.#release();
    return handler;
  }
}

function joinChunks(chunks: readonly Uint8Array[], bytes: number): Uint8Array {
  return chunks.length === 1 ? (chunks[0] as Uint8Array) : Buffer.concat(chunks, bytes);
}

function tellConnected(handler: UpstreamHandler): void {
  handler.onConnected();
}

function tellHead(handler: UpstreamHandler, status: number, headers: IncomingHttpHeaders): void {
  handler.onHead(status, plainHeaders(headers));
}

function tellData(handler: UpstreamHandler, chunk: Uint8Array): void {
  handler.onData(chunk);
}

function tellEnd(handler: UpstreamHandler): void {
  handler.onEnd();
}

function tellError(handler: UpstreamHandler, error: Error): void {
  handler.onError(error);
}

function deliverHeld(call: UndiciCall): void {
  call.deliverHeld();
}

function resumeReading(call: UndiciCall): void {
  call.continueReading();
}

/** A null prototype, so that a field named `constructor` or `__proto__` is nothing but a field. */
function plainHeaders(headers: IncomingHttpHeaders): ResponseHeaders {
  const plain: Record<string, string | readonly string[] | undefined> = Object.create(null);
  for (const name of Object.keys(headers)) {
    if (name !== "__proto__") plain[name] = headers[name];
  }
  return plain;
}

function asError(value: unknown): Error {
  return value instanceof Error ? value : new Error("The HTTP client failed", { cause: value });
}
