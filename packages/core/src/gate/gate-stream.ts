/** The gate alone, over any async iterable of bytes: a `fetch` body, a file, an SDK's raw response. */

import { systemClock, type Clock, type Timer } from "../clock.js";
import { GatewayError, type Failure } from "../errors.js";
import { clientAbort } from "./failures.js";
import { deadlineFailure, type GateOutput } from "./gate.js";
import { Inspector } from "./inspector.js";
import { defaultGateOptions, gateRules, type ResolvedGateOptions } from "./options.js";
import type { GateProtocol } from "./protocols/protocol.js";
import { protocols } from "./protocols/protocols.js";

export interface GateStreamOptions extends Partial<ResolvedGateOptions> {
  /** The name of a protocol that comes with the package, or one of your own. */
  readonly protocol: string | GateProtocol;
  /** In ms, from the call. Default: off. */
  readonly ttftTimeoutMs?: number;
  /** No byte for this long ends the gate. In ms. Default: 300 000. */
  readonly idleTimeoutMs?: number;
  /** Ends the gate, and the body after release. */
  readonly signal?: AbortSignal;
  /** A hint for debuggers; what the body is, its first byte tells. */
  readonly contentType?: string;
  /** Another target may be tried after this one: a billed, empty completion is then rejected. Default: false. */
  readonly anotherTarget?: boolean;
  /** The request's last message is a tool result. Default: false. */
  readonly answersToolResult?: boolean;
  /** After release, a clean end without the protocol's last event throws. Default: true. */
  readonly requireTerminal?: boolean;
  /** Default: the system's. */
  readonly clock?: Clock;
}

export type GateStreamResult =
  | {
      readonly status: "released";
      /** Held bytes first, then the rest, untouched. Throws a `GatewayError` where the stream breaks. */
      readonly body: AsyncIterable<Uint8Array>;
      /** The body is JSON, not a stream. */
      readonly jsonBody: boolean;
    }
  | { readonly status: "rejected"; readonly error: GatewayError };

const defaultIdleTimeoutMs = 300_000;

/**
 * Reads the opening of a stream until it can be told whether it is generation. Never rejects for what the stream does;
 * the source is left (`return()`) when it is rejected.
 *
 * @throws TypeError for an unknown protocol or option out of range
 */
export async function gateStream(source: AsyncIterable<Uint8Array>, options: GateStreamOptions): Promise<GateStreamResult> {
  const driver = new GateDriver(source, options);
  return driver.run();
}

class GateDriver {
  readonly #iterator: AsyncIterator<Uint8Array>;
  readonly #options: GateStreamOptions;
  readonly #inspector: Inspector;
  readonly #clock: Clock;
  readonly #gate: ResolvedGateOptions;
  readonly #startedAt: number;
  /** A read that lost a race with a timer is kept, not repeated. */
  #read: Promise<IteratorResult<Uint8Array>> | undefined;
  #holdingSince: number | undefined;
  #detailSince: number | undefined;

  constructor(source: AsyncIterable<Uint8Array>, options: GateStreamOptions) {
    const protocol = typeof options.protocol === "string" ? protocols.get(options.protocol) : options.protocol;
    if (protocol === undefined) {
      throw new TypeError(`protocol: there is no protocol "${String(options.protocol)}". Take one of ${[...protocols.keys()].join(", ")}.`);
    }
    this.#options = options;
    this.#gate = resolveOptions(options);
    this.#clock = options.clock ?? systemClock;
    this.#startedAt = this.#clock.now();
    const rules = gateRules(protocol, this.#gate, {
      ttftTimeoutMs: options.ttftTimeoutMs,
      anotherTarget: options.anotherTarget ?? false,
      answersToolResult: options.answersToolResult ?? false,
      requireTerminal: options.requireTerminal ?? true,
    });
    this.#inspector = new Inspector(protocol, rules, this.#gate.maxHeldBytes);
    this.#iterator = source[Symbol.asyncIterator]();
  }

  async run(): Promise<GateStreamResult> {
    while (true) {
      const output = await this.#step();
      if (output.type === "release") {
        return { status: "released", body: this.#body(this.#inspector.takeHeld()), jsonBody: this.#inspector.jsonBody };
      }
      if (output.type === "reject") return this.#reject(output.failure);
      if (this.#options.signal?.aborted === true) return this.#reject(clientAbort());
    }
  }

  /** One chunk, or one clock that ran out. */
  async #step(): Promise<GateOutput> {
    if (this.#options.signal?.aborted === true) return { type: "reject", failure: clientAbort() };
    const raced = await this.#race(this.#nextDeadline());
    if (raced === "aborted") return { type: "reject", failure: clientAbort() };
    if ("deadline" in raced) return this.#inspector.deadline(raced.deadline, raced.timeoutMs);
    return this.#feed(raced);
  }

  #feed(read: ReadResult): GateOutput {
    if (read.type === "error") return this.#inspector.error(read.cause);
    if (read.type === "end") return this.#inspector.end();
    this.#holdingSince ??= this.#clock.now();
    const output = this.#inspector.push(read.chunk);
    if (this.#inspector.phase === "awaiting-detail") this.#detailSince ??= this.#clock.now();
    return output;
  }

  #nextDeadline(): Deadline {
    const { ttftTimeoutMs, idleTimeoutMs = defaultIdleTimeoutMs } = this.#options;
    const { maxHoldMs, failureDetailTimeoutMs } = this.#gate;
    const now = this.#clock.now();
    const all: Deadline[] = [{ deadline: "idle", at: now + idleTimeoutMs, timeoutMs: idleTimeoutMs }];
    if (ttftTimeoutMs !== undefined) all.push({ deadline: "ttft", at: this.#startedAt + ttftTimeoutMs, timeoutMs: ttftTimeoutMs });
    else if (maxHoldMs > 0 && this.#holdingSince !== undefined) {
      all.push({ deadline: "hold", at: this.#holdingSince + maxHoldMs, timeoutMs: maxHoldMs });
    }
    if (this.#detailSince !== undefined) {
      all.push({ deadline: "detail", at: this.#detailSince + failureDetailTimeoutMs, timeoutMs: failureDetailTimeoutMs });
    }
    return all.reduce((first, other) => (other.at < first.at ? other : first));
  }

  /** The next read, the deadline, or the caller's signal: whichever is first. Ends the timer and the listener. */
  async #race(deadline: Deadline): Promise<ReadResult | Deadline | "aborted"> {
    const { signal } = this.#options;
    let timer: Timer | undefined;
    let onAbort: (() => void) | undefined;
    try {
      return await new Promise((resolve) => {
        timer = this.#clock.setTimer(deadline.at, () => resolve(deadline));
        onAbort = () => resolve("aborted");
        signal?.addEventListener("abort", onAbort);
        this.#read ??= this.#iterator.next();
        this.#read.then(
          (result) => {
            this.#read = undefined;
            resolve(result.done === true ? { type: "end" } : { type: "chunk", chunk: result.value });
          },
          (cause: unknown) => {
            this.#read = undefined;
            resolve({ type: "error", cause });
          },
        );
      });
    } finally {
      timer?.cancel();
      if (onAbort !== undefined) signal?.removeEventListener("abort", onAbort);
    }
  }

  #reject(failure: Failure): GateStreamResult {
    this.#leave();
    return { status: "rejected", error: new GatewayError(failure) };
  }

  /** Not awaited: on a generator over a stalled source it never settles. */
  #leave(): void {
    this.#inspector.close();
    this.#iterator.return?.().then(undefined, () => undefined);
  }

  async *#body(held: readonly Uint8Array[]): AsyncGenerator<Uint8Array, void, undefined> {
    const { idleTimeoutMs = defaultIdleTimeoutMs, signal } = this.#options;
    let ended = false;
    try {
      yield* held;
      while (true) {
        if (signal?.aborted === true) throw new GatewayError(clientAbort());
        const raced = await this.#race({ deadline: "idle", at: this.#clock.now() + idleTimeoutMs, timeoutMs: idleTimeoutMs });
        if (raced === "aborted") throw new GatewayError(clientAbort());
        const output = "deadline" in raced ? this.#inspector.deadline("idle", raced.timeoutMs) : this.#feed(raced);
        if (output.type === "fail") throw new GatewayError(output.failure);
        if (output.type === "finish") {
          ended = !("deadline" in raced);
          return;
        }
        if ("deadline" in raced) throw new GatewayError(deadlineFailure("idle", raced.timeoutMs));
        if (raced.type === "chunk") yield raced.chunk;
        else return;
      }
    } finally {
      if (!ended) this.#leave();
    }
  }
}

type ReadResult =
  | { readonly type: "chunk"; readonly chunk: Uint8Array }
  | { readonly type: "end" }
  | { readonly type: "error"; readonly cause: unknown };

interface Deadline {
  readonly deadline: "idle" | "ttft" | "hold" | "detail";
  readonly at: number;
  readonly timeoutMs: number;
}

function resolveOptions(options: GateStreamOptions): ResolvedGateOptions {
  const resolved = { ...defaultGateOptions };
  for (const key of Object.keys(resolved) as (keyof ResolvedGateOptions)[]) {
    const value = options[key];
    if (value === undefined) continue;
    if (typeof value !== typeof resolved[key]) throw new TypeError(`${key}: must be a ${typeof resolved[key]}`);
    Object.assign(resolved, { [key]: value });
  }
  return resolved;
}
