/** A handler that keeps what it is told, and lets a test wait for it. */

import { onTestFinished } from "vitest";
import type { UndiciClientOptions } from "../../src/upstream/client.js";
import { createUndiciClient } from "../../src/upstream/client.js";
import type { ResponseHeaders } from "../../src/response-headers.js";
import type { UpstreamClient, UpstreamHandler, UpstreamRequest } from "../../src/upstream/upstream.js";

export class Recorder implements UpstreamHandler {
  /** The names of the calls, in order. */
  readonly calls: string[] = [];
  status: number | undefined;
  headers: ResponseHeaders | undefined;
  body = "";
  readonly chunks: string[] = [];
  error: (Error & { code?: string }) | undefined;
  /** After `onEnd` or `onError`. */
  readonly done: Promise<void>;
  /** Called after each call, with its name. */
  on: (name: string) => void = () => undefined;
  readonly #resolve: () => void;
  readonly #waiting: { name: string; resolve: () => void }[] = [];

  constructor() {
    const { promise, resolve } = withResolvers();
    this.done = promise;
    this.#resolve = resolve;
  }

  /** After the next call of this name, or at once if it was called before. */
  async called(name: string): Promise<void> {
    if (this.calls.includes(name)) return;
    await new Promise<void>((resolve) => this.#waiting.push({ name, resolve }));
  }

  onConnected(): void {
    this.#call("connected");
  }
  onHead(status: number, headers: ResponseHeaders): void {
    this.status = status;
    this.headers = headers;
    this.#call("head");
  }
  onData(chunk: Uint8Array): void {
    const text = Buffer.from(chunk).toString("latin1");
    this.body += text;
    this.chunks.push(text);
    this.#call("data");
  }
  onEnd(): void {
    this.#call("end");
    this.#resolve();
  }
  onError(error: Error): void {
    this.error = error;
    this.#call("error");
    this.#resolve();
  }

  #call(name: string): void {
    this.calls.push(name);
    this.on(name);
    for (const waiting of this.#waiting) if (waiting.name === name) waiting.resolve();
  }
}

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((fulfil) => {
    resolve = fulfil;
  });
  return { promise, resolve };
}

/** A client that is closed with the test. */
export function testClient(options: UndiciClientOptions = {}): UpstreamClient {
  const client = createUndiciClient(options);
  onTestFinished(() => client.close());
  return client;
}

export function post(origin: string, overrides: Partial<UpstreamRequest> = {}): UpstreamRequest {
  return {
    method: "POST",
    origin,
    path: "/v1/messages",
    headers: ["content-type", "application/json"],
    body: Buffer.from("{}"),
    connectTimeoutMs: 5_000,
    ...overrides,
  };
}

/** Sends and waits for the end. */
export async function exchange(client: UpstreamClient, request: UpstreamRequest): Promise<Recorder> {
  const recorder = new Recorder();
  client.send(request, recorder);
  await recorder.done;
  return recorder;
}

/** Lets what is already under way in the event loop and on loopback happen. For proofs that nothing happens. */
export async function settle(turns = 20): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
}
