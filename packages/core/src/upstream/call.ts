/**
 * One request as undici sees it. The class is the handler itself and its own `AsyncResource`: one object per request,
 * no closures, and the caller's `AsyncLocalStorage` in every handler call (undici would call in the context of whoever
 * opened the socket).
 */

import { AsyncResource } from "node:async_hooks";
import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import type { Connection, ConnectionUser } from "./connections.js";
import { abortedError, isDeadConnection, restoreCode } from "./connections.js";
import { JoinedChunks } from "./joined-chunks.js";
import { plainHeaders, plainHeadersInPlace } from "./plain-headers.js";
import type { UpstreamCall, UpstreamHandler, UpstreamRequest } from "./upstream.js";

/** Sends a call to undici: once, and once more when the socket had gone stale. */
export interface CallSender {
  /** Whether a call may be sent again over a connection of its own. */
  readonly canResend: boolean;
  resend(call: UndiciCall, request: UpstreamRequest): void;
}

/** 1xx answers to one request. A real server sends one or two. */
const maxInformational = 32;

/** One read of a socket is no larger. */
const maxJoinedBytes = 65_536;

export class UndiciCall extends AsyncResource implements UpstreamCall, ConnectionUser, Dispatcher.DispatchHandler {
  /** Undefined once it is not sent again. */
  #request: UpstreamRequest | undefined;
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
  readonly #held = new JoinedChunks();
  /** The answer ended while the reader paused. */
  #ended = false;

  constructor(request: UpstreamRequest, handler: UpstreamHandler, sender: CallSender) {
    super("FirstChunkUpstreamCall");
    this.#request = request;
    this.#handler = handler;
    this.#sender = sender;
  }

  get paused(): boolean {
    return this.#paused && this.#controller !== undefined;
  }

  get refused(): boolean {
    return this.#refused;
  }

  runOn(connection: Connection): void {
    this.#connection = connection;
    connection.user = this;
    this.dispatchTo(connection.client);
  }

  /** Hands the call to a dispatcher. What is thrown or reported before this returns arrives later, at `onError`. */
  dispatchTo(dispatcher: Dispatcher): void {
    const { origin, path, method, headers, body } = this.#request as UpstreamRequest;
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
    this.#release();
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

  deliverTo(handler: UpstreamHandler): void {
    if (this.#handler !== undefined) this.#handler = handler;
  }

  continueReading(): void {
    this.deliverHeld();
    if (this.#paused) return;
    if (!this.#ended) return this.#controller?.resume();
    try {
      this.#end();
    } catch {
      // It has nowhere to go. That of an answer which is read to its end without a pause, undici drops.
    }
  }

  // As the user of a connection

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
    this.runInAsyncScope(this.#handler.onConnected, this.#handler);
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
    this.#request = undefined;
    // Views on the whole read in which the head came, one for each name and value: 3 KiB for as long as the stream lasts.
    controller.rawHeaders = null;
    const plain = this.#connection === undefined ? plainHeaders(headers) : plainHeadersInPlace(headers);
    this.runInAsyncScope(this.#handler.onHead, this.#handler, status, plain);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    // Resuming a parser can yield an empty chunk.
    if (chunk.length === 0 || this.#handler === undefined) return;
    // All that one read of the socket brings is one chunk to what follows, and one write: it waits for the end of the read.
    if (this.#held.bytes + chunk.length > maxJoinedBytes && !this.#paused) this.#flush();
    if (this.#held.bytes === 0) process.nextTick(deliverHeld, this);
    this.#held.push(chunk);
  }

  deliverHeld(): void {
    if (this.#paused) return;
    try {
      this.#flush();
    } catch (bug) {
      this.#break(asError(bug));
    }
  }

  /** What a handler throws in a tick of its own, where undici does not catch it. */
  #break(bug: Error): void {
    if (this.#controller === undefined) this.#fail(bug);
    else this.#controller.abort(bug);
  }

  #flush(): void {
    if (this.#held.bytes > 0) this.#deliver(this.#held.take());
  }

  #deliver(chunk: Uint8Array): void {
    const handler = this.#handler;
    if (handler === undefined) return;
    this.runInAsyncScope(handler.onData, handler, chunk);
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
    if (handler !== undefined) this.runInAsyncScope(handler.onEnd, handler);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#dispatching) {
      this.failLater(asError(error));
      return;
    }
    try {
      this.#flush();
    } catch (bug) {
      this.#fail(asError(bug));
    }
    this.#fail(asError(error));
  }

  #fail(error: Error): void {
    if (this.#handler === undefined) return;
    restoreCode(error);
    const request = this.#request;
    if (request !== undefined && this.#isStale(error)) {
      this.#release();
      this.#sender.resend(this, request);
      return;
    }
    const handler = this.#finish();
    if (handler !== undefined) this.runInAsyncScope(handler.onError, handler, error);
  }

  /**
   * The provider closed an idle connection while the request was on its way: nothing is wrong with the provider, and
   * nothing of an answer was seen. On a fresh socket, such as that of the second try, the same error is the provider's
   * failure.
   */
  #isStale(error: Error & { code?: string }): boolean {
    if (this.#answered || !this.#sender.canResend) return false;
    if (!isDeadConnection(error)) return false;
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
    this.#request = undefined;
    this.#held.clear();
    this.#release();
    return handler;
  }
}

function deliverHeld(call: UndiciCall): void {
  call.deliverHeld();
}

function resumeReading(call: UndiciCall): void {
  call.continueReading();
}

function asError(value: unknown): Error {
  return value instanceof Error ? value : new Error("The HTTP client failed", { cause: value });
}
