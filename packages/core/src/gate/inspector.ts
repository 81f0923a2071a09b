/**
 * The gate over one stream of bytes: keeps what is held, decodes it, judges the frames and steps the machine. Its
 * drivers (`gateStream`, the attempt) bring the bytes and the time.
 */

import type { Failure } from "../errors.js";
import { afterBlankLine, MarkerSearch } from "./byte-search.js";
import type { Frame, FrameDecoder } from "./frame.js";
import { createEventDecoder } from "./frames.js";
import { Gate, type GateDeadline, type GateInput, type GateOutput, type GatePhase, type GateRules } from "./gate.js";
import { HeldBytes } from "./held-bytes.js";
import { opensJson } from "./json-frames.js";
import { Judge, type ValueListener } from "./judge.js";
import type { GateProtocol } from "./protocols/protocol.js";
import type { TokenUsage } from "./usage.js";
import { Watch } from "./watch.js";

const forward: GateOutput = { type: "forward" };
const hold: GateOutput = { type: "hold" };

/** In place of a decoder that has nothing more to do. */
const spent: FrameDecoder = { push: () => [], end: () => [], pendingBytes: 0 };

const lessThan = 0x3c;

/** White space, and the bytes of a byte order mark. */
const beforeBody = new Set([0x09, 0x0a, 0x0d, 0x20, 0xef, 0xbb, 0xbf]);

function openingOf(chunk: Uint8Array): number | undefined {
  for (const byte of chunk) if (!beforeBody.has(byte)) return byte;
  return undefined;
}

/** One search per protocol: the markers are encoded once. */
const searches = new WeakMap<GateProtocol, MarkerSearch>();

function searchFor(protocol: GateProtocol): MarkerSearch {
  let search = searches.get(protocol);
  if (search === undefined) searches.set(protocol, (search = new MarkerSearch(protocol.watchMarkers)));
  return search;
}

export class Inspector {
  readonly #protocol: GateProtocol;
  readonly #maxHeldBytes: number;
  readonly #readsUsage: boolean;
  readonly #gate: Gate;
  readonly #judge: Judge;
  #decoder: FrameDecoder;
  #watch: Watch | undefined;
  readonly #held = new HeldBytes();
  #heldBytes = 0;
  /** Bytes read, and where in them the last complete event ended. */
  #position = 0;
  #eventEnd = 0;
  /** The first byte of the body that is not white space. */
  #opening: number | undefined;
  #recorded: Failure | undefined;

  /**
   * @param maxHeldBytes `gate.maxHeldBytes`
   * @param onValue hears of the frames that are decoded
   * @param readsUsage false: nobody asks what the provider says of usage once its answer is complete
   */
  constructor(
    protocol: GateProtocol,
    rules: GateRules,
    maxHeldBytes: number,
    onValue?: ValueListener,
    readsUsage: boolean = true,
  ) {
    this.#protocol = protocol;
    this.#maxHeldBytes = maxHeldBytes;
    this.#readsUsage = readsUsage || onValue !== undefined;
    this.#gate = new Gate(rules);
    this.#judge = new Judge(protocol, onValue);
    this.#decoder = protocol.createDecoder();
  }

  get phase(): GatePhase {
    return this.#gate.phase;
  }
  get holdsEvent(): boolean {
    return this.#gate.holdsEvent;
  }
  /** Bytes held at the moment; after release, how many were held. */
  get heldBytes(): number {
    return this.#heldBytes;
  }
  /** The body is JSON, not a stream: it keeps its own content type, and no event can be added to it. */
  get jsonBody(): boolean {
    return this.#protocol.framing !== "line" && opensJson(this.#opening);
  }
  /** An in-band failure that was passed on after release. */
  get recorded(): Failure | undefined {
    return this.#recorded;
  }
  get sequenceNumber(): number | undefined {
    const judged = this.#judge.sequenceNumber;
    const watched = this.#watch?.sequenceNumber;
    return watched === undefined || (judged !== undefined && judged > watched) ? judged : watched;
  }
  get responseId(): string | undefined {
    return this.#judge.responseId;
  }
  /** What the provider has told so far. */
  get usage(): TokenUsage | undefined {
    return this.#judge.usage;
  }
  /** The model that answers, in the provider's words. */
  get responseModel(): string | undefined {
    return this.#judge.responseModel;
  }

  /** Anything but `hold`, `release` and `reject` before release, or `forward` after it, is `ignore`. */
  push(chunk: Uint8Array): GateOutput {
    if (this.#gate.phase === "closed") return { type: "ignore" };
    const committed = this.#gate.phase === "committed";
    if (chunk.length === 0) return committed ? forward : hold;
    this.#opening ??= openingOf(chunk);
    if (committed) return this.#pushCommitted(chunk);
    this.#held.push(chunk);
    this.#heldBytes += chunk.length;
    const result = this.#judgeHeld(chunk);
    if (result.type === "hold") this.#held.settle();
    return result;
  }

  /** A `release` comes where only the end could decide: the end itself is then asked for again. */
  end(): GateOutput {
    const frames = this.#watch === undefined ? this.#decoder.end() : this.#watch.end();
    const result = this.#judgeFrames(frames, true);
    return result.type === "reject" || result.type === "release" ? result : this.#gate.step({ type: "end" });
  }

  error(cause: unknown): GateOutput {
    // After release what came before the break may say why, or that nothing is missing.
    if (this.#gate.phase === "committed" && this.#watch !== undefined) this.#judgeFrames(this.#watch.end(), true);
    return this.#gate.step({ type: "error", cause });
  }

  /** A clock of the drivers ran out. */
  deadline(deadline: GateDeadline, timeoutMs: number): GateOutput {
    const result = this.#gate.step({ type: "deadline", deadline, timeoutMs });
    if (result.type === "release") this.#startWatch();
    return result;
  }

  /** The reader left. */
  close(): void {
    this.#gate.close();
    this.#held.take();
  }

  /** What was held, in order. Once, after `release`. */
  takeHeld(): Uint8Array[] {
    return this.#held.take();
  }

  #judgeHeld(chunk: Uint8Array): GateOutput {
    const first = this.#gate.step({ type: "bytes" });
    const result = this.#judgeByEvent(chunk);
    if (first.type === "release") return first;
    if (result.type !== "hold" || this.#heldBytes <= this.#maxHeldBytes) return result;
    const limited = this.#gate.step({ type: "limit" });
    if (limited.type === "release") this.#startWatch();
    return limited;
  }

  /** One event at a time: what follows the one that releases is for the watch, which parses next to nothing. */
  #judgeByEvent(chunk: Uint8Array): GateOutput {
    let at = 0;
    while (true) {
      const end = this.#protocol.framing === "blank-line" ? afterBlankLine(chunk, at) : chunk.length;
      const result = this.#judgeFrames(
        this.#decode(at === 0 && end === chunk.length ? chunk : chunk.subarray(at, end)),
        false,
      );
      if (result.type === "reject") return result;
      if (this.#gate.phase === "committed") {
        this.#startWatch();
        if (end < chunk.length) this.#pushCommitted(chunk.subarray(end));
        return result;
      }
      if (end === chunk.length) return result;
      at = end;
    }
  }

  #decode(bytes: Uint8Array): readonly Frame[] {
    this.#position += bytes.length;
    return this.#decoder.push(bytes);
  }

  /** Steps the machine through the frames. Those after the one that releases are read as released ones. */
  #judgeFrames(frames: readonly Frame[], trailing: boolean): GateOutput {
    let result: GateOutput = this.#gate.phase === "committed" ? forward : hold;
    for (const frame of frames) {
      if (this.#saysNothingMore(frame)) continue;
      // Counted by position, not by chunk: where the network splits the stream must not matter.
      if (frame.end > this.#maxHeldBytes && this.#gate.phase !== "committed") {
        result = this.#gate.step({ type: "limit" });
        if (result.type === "reject") return result;
      }
      // A single line, a comment or a stray may lie within an event, which the watch then has to see whole.
      if (frame.kind === "event" && frame.line !== true) this.#eventEnd = frame.end;
      const input = this.#judge.judge(frame, trailing);
      if (input === undefined) continue;
      const output = this.#step(input);
      if (output.type === "reject") return output;
      if (output.type === "release") result = output;
    }
    return result;
  }

  /** The answer is complete, and the frame can be no error: only its usage is left to read. */
  #saysNothingMore(frame: Frame): boolean {
    if (this.#readsUsage || this.#watch === undefined || frame.kind !== "event" || !this.#gate.complete) return false;
    const search = searchFor(this.#protocol);
    return !search.occursIn(frame.event) && !search.occursIn(frame.data);
  }

  #step(input: GateInput): GateOutput {
    const output = this.#gate.step(input);
    if ((output.type === "forward" || output.type === "release") && output.record !== undefined)
      this.#recorded = output.record;
    return output;
  }

  /** The last `length` bytes that the decoder was given: what was held since is for the watch. */
  #begun(length: number): readonly Uint8Array[] {
    const later = this.#heldBytes - this.#position;
    return length <= 0 ? [] : this.#held.tail(length + later, later);
  }

  /** A body that is no stream only the decoder can follow. One of which nothing but white space has come may become one. */
  #startWatch(): void {
    if (
      this.#protocol.framing === "decoded" ||
      this.#opening === undefined ||
      this.#opening === lessThan ||
      this.jsonBody
    )
      return;
    const begun = this.#decoder.pendingBytes === 0 ? 0 : this.#position - this.#eventEnd;
    this.#decoder = spent;
    this.#watch = new Watch(
      {
        framing: this.#protocol.framing,
        search: searchFor(this.#protocol),
        numbered: this.#protocol.numbersEvents === true,
        createDecoder:
          this.#protocol.framing === "blank-line" ? createEventDecoder : () => this.#protocol.createDecoder(),
        maxBytes: this.#maxHeldBytes,
      },
      this.#begun(begun),
    );
    this.#watch.everything = this.#readsUsage && this.#gate.complete;
    if (this.#watch.blind) this.#gate.step({ type: "blind" });
  }

  #pushCommitted(chunk: Uint8Array): GateOutput {
    const watch = this.#watch;
    if (watch !== undefined) {
      const frames = watch.push(chunk);
      if (frames.length > 0) {
        this.#judgeFrames(frames, false);
        // Usage may follow in frames without a marker. Looking for it sooner would decode every frame of the servers that
        // repeat it in each.
        watch.everything = this.#readsUsage && this.#gate.complete;
      }
      if (watch.blind) this.#gate.step({ type: "blind" });
      return forward;
    }
    this.#judgeFrames(this.#decode(chunk), false);
    // A body that never completes a value must not grow in the decoder.
    if (this.#decoder.pendingBytes > this.#maxHeldBytes) {
      this.#decoder = spent;
      this.#gate.step({ type: "blind" });
    }
    return forward;
  }
}
