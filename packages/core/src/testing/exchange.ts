/** One request at a scripted provider: what was asked, and the script's answer being played. */

import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { setImmediate, setTimeout } from "node:timers/promises";
import type { Script, Step } from "./script.js";

/** A step of the script, when it was begun. */
export interface PlayedStep {
  /** `performance.now()`, in ms. */
  readonly at: number;
  readonly step: Step;
}

/** The end of the connection that carried a request. */
export interface RequestClosed {
  /** `performance.now()`, in ms. */
  readonly at: number;
  /** The client ended it before the script had ended the response. */
  readonly byClient: boolean;
}

export interface ReceivedRequest {
  /** Counted from 0 over the provider's life. */
  readonly index: number;
  readonly method: string;
  /** Path and query, as they came. */
  readonly path: string;
  /** Lower-case names. */
  readonly headers: IncomingHttpHeaders;
  /** Name, value, name, value, … as they came. */
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  /** When the body was complete: `performance.now()`, in ms. */
  readonly receivedAt: number;
  /** Settles when the connection is closed by either side. A kept-alive connection may stay open for long. */
  readonly closed: Promise<RequestClosed>;
  /** Settles when the script has come to its end or the client has left. */
  readonly scriptDone: Promise<void>;
  /** What the script has done so far. */
  readonly played: readonly PlayedStep[];
  /** Body bytes that the script has written so far. */
  readonly sentBytes: number;
}

export class Exchange implements ReceivedRequest {
  readonly index: number;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly body: Buffer;
  readonly receivedAt: number = performance.now();
  readonly closed: Promise<RequestClosed>;
  readonly scriptDone: Promise<void>;
  readonly played: PlayedStep[] = [];
  sentBytes = 0;
  readonly #socket: Socket;
  readonly #res: ServerResponse;
  readonly #gone = new AbortController();
  #endedByScript = false;
  #settleScript: () => void = () => {};

  constructor(index: number, req: IncomingMessage, res: ServerResponse, body: Buffer) {
    this.index = index;
    this.method = req.method ?? "";
    this.path = req.url ?? "";
    this.headers = req.headers;
    this.rawHeaders = req.rawHeaders;
    this.body = body;
    this.#socket = req.socket;
    this.#res = res;
    res.on("error", () => {});
    this.scriptDone = new Promise((resolve) => {
      this.#settleScript = resolve;
    });
    this.closed = new Promise((resolve) => {
      const onClose = (): void => {
        this.#gone.abort();
        resolve({ at: performance.now(), byClient: !this.#endedByScript });
      };
      if (this.#socket.destroyed) onClose();
      else this.#socket.once("close", onClose);
    });
  }

  /** Runs the steps until one of them ends the response, the list is over, or the client leaves. */
  async play(script: Script): Promise<void> {
    try {
      for (const step of script) {
        if (this.#gone.signal.aborted) return;
        this.played.push({ at: performance.now(), step });
        await this.#run(step);
        if (this.#endedByScript) return;
      }
    } finally {
      this.#settleScript();
    }
  }

  async #run(step: Step): Promise<void> {
    switch (step.step) {
      case "head":
        this.#res.writeHead(step.status, { ...step.headers } as Record<string, string | string[]>);
        this.#res.flushHeaders();
        return;
      case "chunk":
        this.#write(step.data);
        // One turn of the event loop, so that two chunks are two writes on the wire.
        await setImmediate();
        return;
      case "flood":
        for (let sent = 0; sent < step.count && !this.#gone.signal.aborted; sent += 1) {
          if (!this.#write(step.data)) await this.#drained();
        }
        return;
      case "raw":
        this.#socket.write(step.data);
        return;
      case "wait":
        await setTimeout(step.ms, undefined, { signal: this.#gone.signal }).catch(() => {});
        return;
      case "until":
        await Promise.race([step.promise(), this.closed]);
        return;
      case "hold":
        await this.closed;
        return;
      default:
        this.#finish(step.step);
    }
  }

  #finish(how: "end" | "reset" | "fin"): void {
    this.#endedByScript = true;
    if (how === "end") this.#res.end();
    else if (how === "reset") this.#socket.resetAndDestroy();
    else this.#socket.end(() => this.#socket.destroy());
  }

  #write(data: string | Uint8Array): boolean {
    this.sentBytes += Buffer.byteLength(data);
    return this.#res.write(data);
  }

  #drained(): Promise<void> {
    return new Promise((resolve) => {
      const settle = (): void => {
        this.#res.off("drain", settle);
        this.#socket.off("close", settle);
        resolve();
      };
      this.#res.once("drain", settle);
      this.#socket.once("close", settle);
    });
  }
}
