/**
 * One request as undici sees it. The class is the handler itself and its own `AsyncResource`: one object per request,
 * no closures, and the caller's `AsyncLocalStorage` in every handler call (undici would call in the context of whoever
 * opened the socket).
 *
 * It is a handler in the style that undici 7 itself is written for. A handler in the newer style costs a second handler
 * around each, and a record of all headers of each answer, most of which nobody reads: more than the gate does. undici 8,
 * which needs Node 22.19, takes the newer style alone; a dispatcher that was handed in may be of any line that does, and
 * gets a `ForeignHandler`.
 */

import { AsyncResource } from "node:async_hooks";
import type { Dispatcher } from "undici";
import { EndOfTurn, type Task } from "../end-of-turn.js";
import type { ResponseHeaders } from "../response-headers.js";
import type { Connection, ConnectionUser } from "./connections.js";
import { abortedError, isDeadConnection, restoreCode } from "./connections.js";
import { ParserControl, type CallControl } from "./call-control.js";
import { JoinedChunks } from "./joined-chunks.js";
import { readRawHeaders } from "./raw-headers.js";
import type { UpstreamCall, UpstreamHandler, UpstreamRequest } from "./upstream.js";

/** Sends a call to undici: once, and once more when the socket had gone stale. */
export interface CallSender {
  /** Whether a call may be sent again over a connection of its own. */
  readonly canResend: boolean;
  resend(call: UndiciCall, request: UpstreamRequest): void;
}

/** Of all calls. */
const deliveries = new EndOfTurn();

/** 1xx answers to one request. A real server sends one or two. */
const maxInformational = 32;

/** One read of a socket is no larger. */
const maxJoinedBytes = 65_536;

export class UndiciCall
  extends AsyncResource
  implements UpstreamCall, ConnectionUser, Dispatcher.DispatchHandler, Task
{
  /** Undefined once it is not sent again. */
  #request: UpstreamRequest | undefined;
  readonly #sender: CallSender;
  /** Undefined once nothing more may be called. */
  #handler: UpstreamHandler | undefined;
  #control: CallControl | undefined;
  /** Of our own connections: to the end, since the parser asks it. */
  #parser: ParserControl | undefined;
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
    return this.#paused && this.#control !== undefined;
  }

  get refused(): boolean {
    return this.#refused;
  }

  runOn(connection: Connection): void {
    this.#connection = connection;
    connection.user = this;
    this.dispatchTo(connection.client, this);
  }

  /**
   * Hands the call to a dispatcher. What is thrown or reported before this returns arrives later, at `onError`.
   *
   * @param handler the call itself, or what stands for it
   */
  dispatchTo(dispatcher: Dispatcher, handler: Dispatcher.DispatchHandler): void {
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
      dispatcher.dispatch(options, handler);
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
    const control = this.#control;
    const connecting = this.#connection?.connecting;
    this.#finish();
    if (control !== undefined) control.abort(abortedError);
    // Before the request starts undici has nothing to abort with; `start` refuses it should it come to that.
    else connecting?.destroy(abortedError);
  }

  pause(): void {
    if (this.#handler === undefined || this.#paused) return;
    this.#paused = true;
    this.#control?.pause();
  }

  resume(): void {
    if (this.#handler === undefined || !this.#paused) return;
    this.#paused = false;
    // Not at once: undici's parser must not be resumed from within a callback of any of its parsers.
    if (this.#control !== undefined || this.#ended) process.nextTick(resumeReading, this);
  }

  deliverTo(handler: UpstreamHandler): void {
    if (this.#handler !== undefined) this.#handler = handler;
  }

  continueReading(): void {
    this.run();
    if (!this.#paused) this.#control?.resume();
  }

  // As the user of a connection

  flush(): void {
    this.#control?.resume();
  }

  // As undici's handler. What returns false pauses the parser.

  onConnect(abort: (reason?: Error) => void): void {
    this.#parser = new ParserControl(abort);
    this.start(this.#parser);
  }

  /** The first byte of a response, where undici tells it; a broken head is an answer too. */
  onResponseStarted(): void {
    this.#answered = true;
  }

  onHeaders(status: number, headers: readonly Buffer[], resume: () => void): boolean {
    const parser = this.#parser as ParserControl;
    parser.resumeWith(resume);
    if (this.awaits(status)) this.head(status, readRawHeaders(headers));
    return !parser.paused;
  }

  onData(chunk: Buffer): boolean {
    this.take(chunk);
    return !(this.#parser as ParserControl).paused;
  }

  onComplete(): void {
    if (!this.#paused && this.#held.bytes === 0) return this.#end();
    // After what is held.
    this.#ended = true;
    this.#release();
  }

  onError(error: Error): void {
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

  // The same, in whatever style undici tells it

  start(control: CallControl): void {
    if (this.#handler === undefined) {
      control.abort(abortedError);
      return;
    }
    this.#control = control;
    if (this.#connection !== undefined) {
      this.#reused = this.#connection.requests > 0;
      this.#connection.requests += 1;
    }
    if (this.#paused) control.pause();
    if (this.#toldConnected) return;
    this.#toldConnected = true;
    this.runInAsyncScope(this.#handler.onConnected, this.#handler);
  }

  /** Whether the head of an answer is of interest, by its status. */
  awaits(status: number): boolean {
    this.#answered = true;
    if (this.#handler === undefined) return false;
    if (status >= 200) return true;
    this.#informational += 1;
    // They are no bytes of an answer, so no other limit would end a flood of them before the idle timeout.
    if (this.#informational > maxInformational)
      this.#control?.abort(new Error("The provider sent nothing but informational answers"));
    return false;
  }

  head(status: number, headers: ResponseHeaders): void {
    const handler = this.#handler;
    if (handler === undefined) return;
    this.#request = undefined;
    this.runInAsyncScope(handler.onHead, handler, status, headers);
  }

  take(chunk: Buffer): void {
    // Resuming a parser can yield an empty chunk.
    if (chunk.length === 0 || this.#handler === undefined) return;
    // All that one read of the socket brings is one chunk to what follows, and one write: it waits for the end of the read.
    if (this.#held.bytes + chunk.length > maxJoinedBytes && !this.#paused) this.#flush();
    const isFirst = this.#held.bytes === 0;
    this.#held.push(chunk);
    if (isFirst && !deliveries.put(this)) process.nextTick(deliver, this);
  }

  /** Hands on what is held, and the end where it has come. */
  run(): void {
    if (this.#paused) return;
    try {
      this.#flush();
    } catch (bug) {
      return this.#break(asError(bug));
    }
    if (!this.#ended || this.#paused) return;
    try {
      this.#end();
    } catch {
      // It has nowhere to go. That of an answer which ends with nothing held, undici drops.
    }
  }

  /** What a handler throws in a tick of its own, where undici does not catch it. */
  #break(bug: Error): void {
    if (this.#control === undefined) this.#fail(bug);
    else this.#control.abort(bug);
  }

  #flush(): void {
    if (this.#held.bytes > 0) this.#deliver(this.#held.take());
  }

  #deliver(chunk: Uint8Array): void {
    const handler = this.#handler;
    if (handler === undefined) return;
    this.runInAsyncScope(handler.onData, handler, chunk);
  }

  #end(): void {
    const handler = this.#finish();
    if (handler !== undefined) this.runInAsyncScope(handler.onEnd, handler);
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
    const idle = this.#control === undefined && (this.#connection?.requests ?? 0) > 0;
    return this.#reused || idle;
  }

  #release(): void {
    if (this.#connection?.user === this) this.#connection.user = undefined;
    this.#connection = undefined;
    this.#control = undefined;
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

function deliver(call: UndiciCall): void {
  call.run();
}

function resumeReading(call: UndiciCall): void {
  call.continueReading();
}

function asError(value: unknown): Error {
  return value instanceof Error ? value : new Error("The HTTP client failed", { cause: value });
}
