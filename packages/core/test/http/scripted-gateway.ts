/** A gateway that answers with what a test says, and keeps what it was asked. */

import type { Failure } from "../../src/errors.js";
import type { BodyEnd, BodySink, CancelReason, FailedEvent, GatewayEvent, ReleasedBody } from "../../src/events.js";
import type { ServedGateway } from "../../src/http/served-gateway.js";
import type { GatewayRequest } from "../../src/request.js";
import { latch } from "../../src/testing/contract/latch.js";

export const anyFailure: Failure = {
  kind: "network",
  status: 502,
  code: "upstream_error",
  message: "The provider broke the connection.",
  retryable: true,
};

/** A body whose chunks the test pushes. What comes before `pipeTo` is kept, as held bytes are. */
export class ScriptedBody implements ReleasedBody {
  cancelled: CancelReason | undefined;
  resumes = 0;
  readonly #kept: Uint8Array[] = [];
  readonly #piped = latch();
  readonly #left = latch();
  #sink: BodySink | undefined;
  #end: BodyEnd | undefined;
  #full = false;
  #resumed = latch();

  /** Settles when the adapter has begun to read. */
  get piped(): Promise<void> {
    return this.#piped.opened;
  }

  /** Settles when the adapter has cancelled. */
  get left(): Promise<void> {
    return this.#left.opened;
  }

  get full(): boolean {
    return this.#full;
  }

  push(bytes: string | Uint8Array): this {
    this.#kept.push(Buffer.from(bytes as string));
    this.#flow();
    return this;
  }

  finish(): this {
    return this.#close({ type: "finish" });
  }

  fail(): this {
    return this.#close({ type: "fail", failure: anyFailure });
  }

  /** Waits until everything that was pushed is taken. */
  async taken(): Promise<void> {
    while (this.#kept.length > 0) await this.#resumed.opened;
  }

  pipeTo(sink: BodySink): void {
    this.#sink = sink;
    this.#flow();
    this.#piped.open();
  }

  resume(): void {
    this.resumes += 1;
    this.#full = false;
    this.#flow();
    const resumed = this.#resumed;
    this.#resumed = latch();
    resumed.open();
  }

  cancel(reason: CancelReason = "client-abort"): void {
    this.cancelled ??= reason;
    this.#left.open();
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    throw new Error("The adapters use pipeTo");
  }

  #close(end: BodyEnd): this {
    this.#end = end;
    this.#flow();
    return this;
  }

  #flow(): void {
    if (this.#sink === undefined || this.cancelled !== undefined) return;
    while (!this.#full) {
      const chunk = this.#kept.shift();
      if (chunk === undefined) break;
      this.#full = !this.#sink.write(chunk);
    }
    if (this.#kept.length > 0 || this.#end === undefined) return;
    const end = this.#end;
    this.#end = undefined;
    this.#sink.end(end);
  }
}

type Answer = (request: GatewayRequest) => AsyncIterable<GatewayEvent>;

export class ScriptedGateway implements ServedGateway {
  readonly limits = { maxRequestBytes: 1024 };
  readonly timeouts = { writeStallTimeoutMs: 60_000 };
  readonly requests: GatewayRequest[] = [];
  readonly refused: Failure[] = [];
  readonly mounted: boolean[] = [];
  readonly #answer: Answer;

  constructor(answer: Answer) {
    this.#answer = answer;
  }

  match(method: string, url: string, mounted: boolean): object | undefined {
    if (method !== "POST" || !/^(\/v1)?\/messages(\?|$)/.test(url)) return undefined;
    if (!url.startsWith("/v1") && !mounted) return undefined;
    this.mounted.push(mounted);
    return { url };
  }

  handle(request: GatewayRequest): AsyncIterable<GatewayEvent> {
    this.requests.push(request);
    return this.#answer(request);
  }

  refuse(_route: object, failure: Failure): FailedEvent {
    this.refused.push(failure);
    return failed(failure);
  }
}

export function failed(failure: Failure): FailedEvent {
  return {
    type: "failed",
    status: failure.status,
    headers: { "content-type": "application/json", "x-tfy-attempts": "0" },
    body: JSON.stringify({ error: { code: failure.code, message: failure.message } }),
    failure,
  };
}

/** Answers every request with this body. */
export function releasing(body: ReleasedBody, headers: Record<string, string | string[]> = {}): ScriptedGateway {
  return new ScriptedGateway(async function* () {
    yield { type: "attempt-start", attempt: 1, target: "a/m" };
    yield { type: "released", status: 200, headers: { "content-type": "text/event-stream", ...headers }, body };
  });
}

export function failing(failure: Failure): ScriptedGateway {
  return new ScriptedGateway(async function* () {
    yield failed(failure);
  });
}

/** Gives no answer until the client leaves. */
export function silent(): ScriptedGateway {
  return new ScriptedGateway(async function* ({ signal }) {
    if (!signal.aborted) await new Promise<void>((resolve) => signal.addEventListener("abort", resolve));
    yield failed({ ...anyFailure, kind: "client-abort", status: 499, code: "client_closed_request" });
  });
}
