/**
 * The gate over one stream of bytes: keeps what is held, decodes it, judges the frames and steps the machine. Its
 * drivers (`gateStream`, the attempt) bring the bytes and the time.
 */

import type { Failure } from "../errors.js";
import { concatBytes, MarkerSearch } from "./byte-search.js";
import type { Frame, FrameDecoder } from "./frame.js";
import { createEventDecoder } from "./frames.js";
import { Gate, type GateDeadline, type GateInput, type GateOutput, type GatePhase, type GateRules } from "./gate.js";
import { Judge } from "./judge.js";
import type { GateProtocol } from "./protocols/protocol.js";
import type { TokenUsage } from "./usage.js";
import { Watch } from "./watch.js";

const forward: GateOutput = { type: "forward" };

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
  readonly #gate: Gate;
  readonly #judge: Judge;
  #decoder: FrameDecoder;
  #watch: Watch | undefined;
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  /** Where the last complete frame ended. */
  #frameEnd = 0;
  #jsonBody = false;
  #recorded: Failure | undefined;

  /** @param maxHeldBytes `gate.maxHeldBytes` */
  constructor(protocol: GateProtocol, rules: GateRules, maxHeldBytes: number) {
    this.#protocol = protocol;
    this.#maxHeldBytes = maxHeldBytes;
    this.#gate = new Gate(rules);
    this.#judge = new Judge(protocol);
    this.#decoder = protocol.createDecoder();
  }

  get phase(): GatePhase {
    return this.#gate.phase;
  }
  /** Bytes held at the moment; after release, how many were held. */
  get heldBytes(): number {
    return this.#heldBytes;
  }
  /** The body is JSON, not a stream: it keeps its own content type, and no event can be added to it. */
  get jsonBody(): boolean {
    return this.#jsonBody;
  }
  /** An in-band failure that was passed on after release. */
  get recorded(): Failure | undefined {
    return this.#recorded;
  }
  get sequenceNumber(): number | undefined {
    return this.#watch?.sequenceNumber ?? this.#judge.sequenceNumber;
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
    if (this.#gate.phase === "committed") return this.#pushCommitted(chunk);
    if (this.#gate.phase === "closed") return { type: "ignore" };
    if (chunk.length === 0) return { type: "hold" };
    this.#held.push(chunk);
    this.#heldBytes += chunk.length;
    const result = this.#judgeHeld(chunk);
    if (result.type === "release") this.#startWatch();
    // A chunk may be a small view on a large read: what stays here must not pin it.
    else if (result.type === "hold" && chunk.length * 2 < chunk.buffer.byteLength) this.#held[this.#held.length - 1] = new Uint8Array(chunk);
    return result;
  }

  end(): GateOutput {
    const frames = this.#watch === undefined ? this.#decoder.end() : this.#watch.end();
    const result = this.#judgeFrames(frames, true);
    return result.type === "reject" || result.type === "release" ? result : this.#gate.step({ type: "end" });
  }

  error(cause: unknown): GateOutput {
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
    this.#held = [];
  }

  /** What was held, in order. Once, after `release`. */
  takeHeld(): Uint8Array[] {
    const held = this.#held;
    this.#held = [];
    return held;
  }

  #judgeHeld(chunk: Uint8Array): GateOutput {
    const first = this.#gate.step({ type: "bytes" });
    if (first.type !== "hold") return first;
    const result = this.#judgeFrames(this.#decoder.push(chunk), false);
    if (result.type !== "hold" || this.#heldBytes <= this.#maxHeldBytes) return result;
    return this.#gate.step({ type: "limit" });
  }

  /** Steps the machine through the frames. Those after the one that releases are read as released ones. */
  #judgeFrames(frames: readonly Frame[], trailing: boolean): GateOutput {
    let result: GateOutput = this.#gate.phase === "committed" ? forward : { type: "hold" };
    for (const frame of frames) {
      // Counted by position, not by chunk: where the network splits the stream must not matter.
      if (frame.end > this.#maxHeldBytes && this.#gate.phase === "holding") {
        result = this.#gate.step({ type: "limit" });
        if (result.type === "reject") return result;
      }
      if (frame.kind === "json" && this.#watch === undefined) this.#jsonBody = true;
      this.#frameEnd = Math.max(this.#frameEnd, frame.end);
      const input = this.#judge.judge(frame, trailing);
      if (input === undefined) continue;
      const output = this.#step(input);
      if (output.type === "reject") return output;
      if (output.type === "release") result = output;
    }
    return result;
  }

  #step(input: GateInput): GateOutput {
    const output = this.#gate.step(input);
    if (output.type === "forward" && output.record !== undefined) this.#recorded = output.record;
    return output;
  }

  #startWatch(): void {
    if (this.#protocol.framing === "decoded" || this.#jsonBody) return;
    const begun = this.#heldBytes - this.#frameEnd;
    this.#watch = new Watch(
      {
        framing: this.#protocol.framing,
        search: searchFor(this.#protocol),
        numbered: this.#protocol.numbersEvents === true,
        createDecoder: this.#protocol.framing === "blank-line" ? createEventDecoder : () => this.#protocol.createDecoder(),
        maxBytes: this.#maxHeldBytes,
      },
      begun <= 0 ? new Uint8Array(0) : tailOf(this.#held, begun),
    );
    this.#watch.everything = this.#gate.complete;
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
        watch.everything = this.#gate.complete;
      }
      if (watch.blind) this.#gate.step({ type: "blind" });
    } else {
      this.#judgeFrames(this.#decoder.push(chunk), false);
      // A body that never completes a value must not grow in the decoder.
      if (this.#decoder.pendingBytes > this.#maxHeldBytes) {
        this.#decoder = { push: () => [], end: () => [], pendingBytes: 0 };
        this.#gate.step({ type: "blind" });
      }
    }
    return forward;
  }
}

/** The last `length` bytes of the chunks. */
function tailOf(chunks: readonly Uint8Array[], length: number): Uint8Array {
  const parts: Uint8Array[] = [];
  let left = length;
  for (let index = chunks.length - 1; index >= 0 && left > 0; index -= 1) {
    const chunk = chunks[index] as Uint8Array;
    const part = chunk.subarray(Math.max(0, chunk.length - left));
    parts.unshift(part);
    left -= part.length;
  }
  return concatBytes(parts);
}
