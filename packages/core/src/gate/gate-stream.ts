/** The gate alone, over any async iterable of bytes: a `fetch` body, a file, an SDK's raw response. */

import { systemClock, type Clock, type Timer } from "../clock.js";
import { GatewayError } from "../errors.js";
import { byteSource, type ByteSource, type WebStream } from "./byte-source.js";
import { clientAbort } from "./failures.js";
import type { GateOutput } from "./gate.js";
import { Inspector } from "./inspector.js";
import { checkWhole, gateRules, resolveGateOptions, type ResolvedGateOptions } from "./options.js";
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
 * the source is left (`cancel()` of a web stream, `destroy()` of a Node stream, else `return()`) when it is rejected, and when the reader of the body leaves.
 *
 * @throws TypeError for an unknown protocol, an option out of range, and a source that does not yield bytes
 */
export async function gateStream(
  source: AsyncIterable<Uint8Array> | WebStream,
  options: GateStreamOptions,
): Promise<GateStreamResult> {
  const driver = new GateDriver(source, options);
  return driver.run();
}

class GateDriver {
  readonly #source: ByteSource;
  readonly #options: GateStreamOptions;
  readonly #inspector: Inspector;
  readonly #clock: Clock;
  readonly #gate: ResolvedGateOptions;
  readonly #startedAt: number;
  readonly #idleTimeoutMs: number;
  /** A read that lost a race with a timer is kept, also where it settles before the next race. */
  #read: Promise<ReadResult> | undefined;
  #holdingSince: number | undefined;
  #detailSince: number | undefined;
  /** The source has ended, or was left. */
  #over = false;
  /** Ends the race under way when the reader leaves. */
  #leaveRace: (() => void) | undefined;

  constructor(source: AsyncIterable<Uint8Array> | WebStream, options: GateStreamOptions) {
    const protocol = typeof options.protocol === "string" ? protocols.get(options.protocol) : options.protocol;
    if (protocol === undefined) {
      throw new TypeError(
        `protocol: there is no protocol ${JSON.stringify(options.protocol)}. Take one of ${[...protocols.keys()].join(", ")}.`,
      );
    }
    checkWhole("ttftTimeoutMs", options.ttftTimeoutMs, 1);
    checkWhole("idleTimeoutMs", options.idleTimeoutMs, 1);
    this.#options = options;
    this.#gate = resolveGateOptions(options);
    this.#idleTimeoutMs = options.idleTimeoutMs ?? defaultIdleTimeoutMs;
    this.#clock = options.clock ?? systemClock;
    this.#startedAt = this.#clock.now();
    const rules = gateRules(protocol, this.#gate, {
      ttftTimeoutMs: options.ttftTimeoutMs,
      anotherTarget: options.anotherTarget ?? false,
      answersToolResult: options.answersToolResult ?? false,
      requireTerminal: options.requireTerminal ?? true,
    });
    // No result of this says anything of usage.
    this.#inspector = new Inspector(protocol, rules, this.#gate.maxHeldBytes, undefined, false);
    this.#source = byteSource(source);
  }

  async run(): Promise<GateStreamResult> {
    let released = false;
    try {
      while (true) {
        const raced = await this.#race(this.#holdingDeadline());
        if (raced.type === "left") return { status: "rejected", error: new GatewayError(clientAbort()) };
        const output = this.#step(raced);
        if (output.type === "reject") return { status: "rejected", error: new GatewayError(output.failure) };
        if (output.type !== "release") continue;
        released = true;
        return { status: "released", body: this.#body(this.#inspector.takeHeld()), jsonBody: this.#inspector.jsonBody };
      }
    } finally {
      if (!released) this.#leave();
    }
  }

  #step(raced: ReadResult | Deadline): GateOutput {
    switch (raced.type) {
      case "deadline":
        return this.#inspector.deadline(raced.deadline, raced.timeoutMs);
      case "error":
        return this.#inspector.error(raced.cause);
      case "end":
        return this.#inspector.end();
      case "chunk":
    }
    if (!isBytes(raced.chunk)) throw new TypeError("source: must yield Uint8Array chunks");
    const output = this.#inspector.push(raced.chunk);
    if (this.#inspector.holdsEvent) this.#holdingSince ??= this.#clock.now();
    if (this.#inspector.phase === "awaiting-detail") this.#detailSince ??= this.#clock.now();
    return output;
  }

  #idleDeadline(): Deadline {
    return {
      type: "deadline",
      deadline: "idle",
      at: this.#clock.now() + this.#idleTimeoutMs,
      timeoutMs: this.#idleTimeoutMs,
    };
  }

  /** The first of the clocks that run before release. */
  #holdingDeadline(): Deadline {
    const { ttftTimeoutMs } = this.#options;
    const { maxHoldMs, failureDetailTimeoutMs } = this.#gate;
    let first = this.#idleDeadline();
    const consider = (deadline: Deadline["deadline"], since: number | undefined, timeoutMs: number): void => {
      if (since !== undefined && since + timeoutMs <= first.at)
        first = { type: "deadline", deadline, at: since + timeoutMs, timeoutMs };
    };
    if (ttftTimeoutMs !== undefined) consider("ttft", this.#startedAt, ttftTimeoutMs);
    else if (maxHoldMs > 0) consider("hold", this.#holdingSince, maxHoldMs);
    consider("detail", this.#detailSince, failureDetailTimeoutMs);
    return first;
  }

  /** The next read, the deadline, or somebody leaving: whichever is first. Ends the timer and the listener. */
  async #race(deadline: Deadline): Promise<ReadResult | Deadline | Left> {
    const { signal } = this.#options;
    if (signal?.aborted === true) return left;
    let timer: Timer | undefined;
    let leave: (() => void) | undefined;
    try {
      const raced = await new Promise<ReadResult | Deadline | Left>((resolve) => {
        timer = this.#clock.setTimer(deadline.at, () => resolve(deadline));
        this.#leaveRace = leave = () => resolve(left);
        signal?.addEventListener("abort", leave);
        this.#read ??= this.#next();
        void this.#read.then(resolve);
      });
      if (raced.type !== "deadline" && raced.type !== "left") this.#read = undefined;
      return raced;
    } finally {
      timer?.cancel();
      if (leave !== undefined) signal?.removeEventListener("abort", leave);
      this.#leaveRace = undefined;
    }
  }

  /** Settles with what the source does, and never rejects. A source that has ended is not asked again. */
  async #next(): Promise<ReadResult> {
    try {
      if (this.#over) return { type: "end" };
      const result = await this.#source.next();
      if (result.done !== true) return { type: "chunk", chunk: result.value };
      this.#over = true;
      return { type: "end" };
    } catch (cause) {
      this.#over = true;
      return { type: "error", cause };
    }
  }

  /** Not awaited: on a generator over a stalled source `return()` never settles. */
  #leave(): void {
    this.#inspector.close();
    this.#leaveRace?.();
    if (this.#over) return;
    this.#over = true;
    void this.#return();
  }

  async #return(): Promise<void> {
    try {
      await this.#source.leave();
    } catch {
      // Nobody is left to be told.
    }
  }

  /** A generator alone hears of `return()` only between two reads, and not at all where it was never read. */
  #body(held: readonly Uint8Array[]): AsyncIterableIterator<Uint8Array> {
    const bytes = this.#bytes(held);
    return {
      next: () => bytes.next(),
      return: () => {
        this.#leave();
        return bytes.return();
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  async *#bytes(held: readonly Uint8Array[]): AsyncGenerator<Uint8Array, void, undefined> {
    try {
      yield* held;
      while (true) {
        const raced = await this.#race(this.#idleDeadline());
        if (raced.type === "left") {
          if (this.#options.signal?.aborted === true) throw new GatewayError(clientAbort());
          return;
        }
        const output = this.#step(raced);
        if (output.type === "fail") throw new GatewayError(output.failure);
        if (raced.type !== "chunk") return;
        yield raced.chunk;
      }
    } finally {
      this.#leave();
    }
  }
}

/** Also of another realm. */
function isBytes(value: unknown): boolean {
  return value instanceof Uint8Array || Object.prototype.toString.call(value) === "[object Uint8Array]";
}

type ReadResult =
  | { readonly type: "chunk"; readonly chunk: Uint8Array }
  | { readonly type: "end" }
  | { readonly type: "error"; readonly cause: unknown };

interface Deadline {
  readonly type: "deadline";
  readonly deadline: "idle" | "ttft" | "hold" | "detail";
  readonly at: number;
  readonly timeoutMs: number;
}

/** The caller's signal is aborted, or the body's reader has left. */
interface Left {
  readonly type: "left";
}
const left: Left = { type: "left" };
