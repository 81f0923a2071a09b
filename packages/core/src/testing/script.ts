/** What a scripted provider does with one request, as data. */

export type ScriptHeaders = Readonly<Record<string, string | readonly string[]>>;

export type Step =
  /** Sends the response head at once. */
  | { readonly step: "head"; readonly status: number; readonly headers: ScriptHeaders }
  /** Sends one piece of the body, in a write of its own. */
  | { readonly step: "chunk"; readonly data: string | Uint8Array }
  /** Sends `data` `count` times and waits for the client whenever the socket is full. */
  | { readonly step: "flood"; readonly data: string | Uint8Array; readonly count: number }
  /** Writes to the socket past the HTTP layer: a broken head, a wrong chunk size. */
  | { readonly step: "raw"; readonly data: string | Uint8Array }
  /** Real time, in ms. Ends early when the client leaves. */
  | { readonly step: "wait"; readonly ms: number }
  /** Goes on when the promise settles, so that a test decides the order of things without sleeping. */
  | { readonly step: "until"; readonly promise: () => Promise<unknown> }
  /** Keeps the connection as it is until the client leaves or the provider is closed. */
  | { readonly step: "hold" }
  /** Ends the response properly. */
  | { readonly step: "end" }
  /** TCP reset. */
  | { readonly step: "reset" }
  /** Closes the connection without the end of the chunked body. */
  | { readonly step: "fin" };

export type Script = readonly Step[];

export function head(status: number, headers: ScriptHeaders = {}): Step {
  return { step: "head", status, headers };
}

export function chunk(data: string | Uint8Array): Step {
  return { step: "chunk", data };
}

export function flood(data: string | Uint8Array, count: number): Step {
  return { step: "flood", data, count };
}

export function raw(data: string | Uint8Array): Step {
  return { step: "raw", data };
}

/** @param ms real time */
export function wait(ms: number): Step {
  return { step: "wait", ms };
}

export function until(promise: () => Promise<unknown>): Step {
  return { step: "until", promise };
}

export function hold(): Step {
  return { step: "hold" };
}

export function end(): Step {
  return { step: "end" };
}

export function reset(): Step {
  return { step: "reset" };
}

export function fin(): Step {
  return { step: "fin" };
}

/** Accepts the connection, reads the request and says nothing. */
export function noResponse(): Script {
  return [hold()];
}

export interface SseOptions {
  /** Default 200. */
  readonly status?: number;
  /** Beside `content-type: text/event-stream`. */
  readonly headers?: ScriptHeaders;
  /** How the body ends. Default `[end()]`. */
  readonly after?: Script;
  /** Real time between events, in ms. Default 0: no wait. */
  readonly gapMs?: number;
}

/** An event stream: the head, each event as a chunk of its own, the end. */
export function sse(events: readonly (string | Uint8Array)[], options: SseOptions = {}): Script {
  const { status = 200, headers = {}, after = [end()], gapMs = 0 } = options;
  const body = events.flatMap((event) => (gapMs > 0 ? [wait(gapMs), chunk(event)] : [chunk(event)]));
  return [head(status, { "content-type": "text/event-stream", ...headers }), ...body, ...after];
}

/** A complete JSON answer. A string body is sent as it is. */
export function json(status: number, body: unknown, headers: ScriptHeaders = {}): Script {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return [head(status, { "content-type": "application/json", ...headers }), chunk(text), end()];
}
