/** An `UpstreamClient` on virtual time that answers as a test says, and keeps what was asked of it. */

import type { Clock, Timer } from "../src/clock.js";
import type { ResponseHeaders } from "../src/response-headers.js";
import type { UpstreamCall, UpstreamClient, UpstreamHandler, UpstreamRequest } from "../src/upstream/upstream.js";

type Action =
  | { readonly type: "connected" }
  | { readonly type: "head"; readonly status: number; readonly headers: ResponseHeaders }
  | { readonly type: "data"; readonly bytes: Uint8Array }
  | { readonly type: "end" }
  | { readonly type: "error"; readonly error: Error };

/** What happens, `after` ms after the step before it. What comes after the last step is silence. */
export type Step = Action & { readonly after: number };

export interface Script {
  readonly steps: readonly Step[];
  /** The steps up to the first that waits are made inside `send()`. Default: on a timer. */
  readonly inSend?: boolean;
}

export function connected(after = 0): Step {
  return { type: "connected", after };
}

export function head(
  status = 200,
  headers: ResponseHeaders = { "content-type": "text/event-stream" },
  after = 0,
): Step {
  return { type: "head", status, headers, after };
}

export function data(content: string | Uint8Array, after = 0): Step {
  return { type: "data", bytes: typeof content === "string" ? new TextEncoder().encode(content) : content, after };
}

export function end(after = 0): Step {
  return { type: "end", after };
}

export function broken(message = "read ECONNRESET", after = 0): Step {
  return { type: "error", error: new Error(message), after };
}

/** Connects and answers with these chunks; then what `last` says, or silence. */
export function stream(chunks: readonly string[], ...last: readonly Step[]): Script {
  return { steps: [connected(), head(), ...chunks.map((chunk) => data(chunk)), ...last] };
}

/** A whole answer that is no stream. */
export function answer(status: number, body: unknown, headers: ResponseHeaders = {}): Script {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return { steps: [connected(), head(status, { "content-type": "application/json", ...headers }), data(text), end()] };
}

/** A non-2xx answer with an OpenAI-shaped error. */
export function refusal(status: number, error: object = {}, headers: ResponseHeaders = {}): Script {
  return answer(
    status,
    { error: { message: `refused with ${status}`, type: "some_error", param: null, code: null, ...error } },
    headers,
  );
}

/** Never connects. */
export const unreachable: Script = { steps: [] };
/** Connects, and nothing more. */
export const mute: Script = { steps: [connected()] };

/** One call, as the gateway made it. */
export class ScriptedCall implements UpstreamCall {
  readonly request: UpstreamRequest;
  /** On the clock; undefined: it was not. */
  abortedAt: number | undefined;
  aborts = 0;
  paused = false;
  pauses = 0;
  resumes = 0;
  /** `onEnd` or `onError` was called. */
  over = false;
  readonly startedAt: number;
  readonly #handler: UpstreamHandler;
  readonly #clock: Clock;
  readonly #kept: Action[] = [];
  #steps: readonly Step[] = [];
  #timer: Timer | undefined;

  constructor(request: UpstreamRequest, handler: UpstreamHandler, clock: Clock) {
    this.request = request;
    this.#handler = handler;
    this.#clock = clock;
    this.startedAt = clock.now();
  }

  get aborted(): boolean {
    return this.abortedAt !== undefined;
  }

  get body(): Record<string, unknown> {
    return JSON.parse(Buffer.from(this.request.body ?? []).toString()) as Record<string, unknown>;
  }

  header(name: string): string | undefined {
    const { headers } = this.request;
    const at = headers.findIndex((value, index) => index % 2 === 0 && value === name);
    return at === -1 ? undefined : headers[at + 1];
  }

  run({ steps, inSend = false }: Script): void {
    this.#steps = steps;
    if (inSend) while (this.#steps[0]?.after === 0) this.#take();
    this.#schedule();
  }

  /** Makes a step now, outside the script, and although reading is paused: it was on its way. */
  deliver(...steps: readonly Step[]): this {
    for (const step of steps) this.#call(step);
    return this;
  }

  abort(): void {
    this.aborts += 1;
    this.abortedAt ??= this.#clock.now();
    this.#timer?.cancel();
    this.#steps = [];
    this.#kept.length = 0;
  }

  pause(): void {
    this.pauses += 1;
    this.paused = true;
  }

  resume(): void {
    this.resumes += 1;
    this.paused = false;
    queueMicrotask(() => {
      while (!this.paused && this.#kept.length > 0) this.#call(this.#kept.shift() as Action);
    });
  }

  #schedule(): void {
    const next = this.#steps[0];
    if (next === undefined || this.aborted || this.over) return;
    this.#timer = this.#clock.setTimer(this.#clock.now() + next.after, () => {
      this.#take();
      this.#schedule();
    });
  }

  #take(): void {
    const [next, ...rest] = this.#steps;
    this.#steps = rest;
    if (next !== undefined) this.#perform(next);
  }

  #perform(action: Action): void {
    if (this.paused || this.#kept.length > 0) this.#kept.push(action);
    else this.#call(action);
  }

  #call(action: Action): void {
    if (this.aborted || this.over) return;
    switch (action.type) {
      case "connected":
        return this.#handler.onConnected();
      case "head":
        return this.#handler.onHead(action.status, action.headers);
      case "data":
        return this.#handler.onData(action.bytes);
      case "end":
        this.over = true;
        return this.#handler.onEnd();
      case "error":
        this.over = true;
        return this.#handler.onError(action.error);
    }
  }
}

export class ScriptedUpstream implements UpstreamClient {
  readonly calls: ScriptedCall[] = [];
  closed = 0;
  readonly #clock: Clock;
  readonly #scripts: Readonly<Record<string, Script | readonly Script[]>>;

  /** @param scripts by origin: for every call, or one for each, the last for all that follow */
  constructor(clock: Clock, scripts: Readonly<Record<string, Script | readonly Script[]>>) {
    this.#clock = clock;
    this.#scripts = scripts;
  }

  send(request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall {
    const call = new ScriptedCall(request, handler, this.#clock);
    const before = this.to(request.origin).length;
    this.calls.push(call);
    const scripts = [this.#scripts[request.origin] ?? unreachable].flat();
    call.run(scripts[Math.min(before, scripts.length - 1)]);
    return call;
  }

  close(): Promise<void> {
    this.closed += 1;
    return Promise.resolve();
  }

  /** The calls to one origin. */
  to(origin: string): readonly ScriptedCall[] {
    return this.calls.filter((call) => call.request.origin === origin);
  }
}
