/** Reads the bytes of a request that nobody has read yet. */

import type { IncomingMessage } from "node:http";
import type { Clock, Timer } from "../clock.js";
import type { Failure } from "../errors.js";
import type { BodyOutcome, BodyReceiver } from "./body-outcome.js";
import { bodyTooLarge } from "./content-encoding.js";
import { clientLeft, refusal } from "./refusal.js";

/**
 * In each span of this length a body that is not complete must bring at least `minBytesPerSpan` bytes. A limit on idle
 * time alone would let a client that drips one byte a second hold a request for days.
 */
const spanMs = 30_000;
const minBytesPerSpan = 16_384;

export class BodyReader {
  readonly #req: IncomingMessage;
  readonly #limit: number;
  readonly #clock: Clock;
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  #bytesBeforeSpan = 0;
  #timer: Timer | undefined;
  /** Undefined once it has the body. */
  #receiver: BodyReceiver | undefined;

  /** @param limit in bytes, as they are sent */
  constructor(req: IncomingMessage, limit: number, clock: Clock, receiver: BodyReceiver) {
    this.#req = req;
    this.#limit = limit;
    this.#clock = clock;
    this.#receiver = receiver;
  }

  /** After a failure nothing more is read. */
  read(): void {
    if (Number(this.#req.headers["content-length"]) > this.#limit) {
      return this.#receiver?.onBody({ failure: bodyTooLarge(this.#limit) });
    }
    this.#req.on("data", this.#onData);
    this.#req.on("end", this.#onEnd);
    // "close" comes after "end", and alone where the client left. It tells the error, too, which nobody else may hear.
    this.#req.on("error", ignore);
    this.#req.on("close", this.#onLeft);
    watchLater(this);
  }

  /** @internal */
  watch(): void {
    if (this.#receiver !== undefined) this.#startSpan();
  }

  readonly #onData = (data: Uint8Array | string): void => {
    const chunk = typeof data === "string" ? Buffer.from(data, this.#req.readableEncoding ?? "utf8") : data;
    this.#bytes += chunk.byteLength;
    if (this.#bytes > this.#limit) this.#finish({ failure: bodyTooLarge(this.#limit) });
    else this.#chunks.push(chunk);
  };

  readonly #onEnd = (): void => {
    const [first] = this.#chunks;
    if (this.#bytes === 0 || first === undefined) this.#finish({ body: undefined });
    else this.#finish({ body: this.#chunks.length === 1 ? first : Buffer.concat(this.#chunks, this.#bytes) });
  };

  readonly #onLeft = (): void => {
    if (this.#receiver !== undefined) this.#finish({ failure: clientLeft(this.#req.errored ?? undefined) });
  };

  #startSpan(): void {
    this.#bytesBeforeSpan = this.#bytes;
    this.#timer = this.#clock.setTimer(this.#clock.now() + spanMs, () => {
      if (this.#bytes - this.#bytesBeforeSpan >= minBytesPerSpan) this.#startSpan();
      else this.#finish({ failure: bodyTimeout() });
    });
  }

  #finish(outcome: BodyOutcome): void {
    const receiver = this.#receiver;
    if (receiver === undefined) return;
    this.#receiver = undefined;
    this.#timer?.cancel();
    // After the end nothing is told any more but "close", and the request is gone with its response: taking the listeners
    // back would cost as much as the reading did.
    if ("failure" in outcome) {
      this.#req.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onLeft);
      this.#req.pause();
    }
    this.#chunks = none;
    receiver.onBody(outcome);
  }
}

const none: Uint8Array[] = [];

function ignore(): void {
  // Told by "close".
}

const unwatched: BodyReader[] = [];

/** Most bodies came in one packet with their head, and are read in this turn of the event loop: they need no timer. */
function watchLater(reader: BodyReader): void {
  if (unwatched.push(reader) === 1) setImmediate(watchUnread);
}

function watchUnread(): void {
  for (const reader of unwatched) reader.watch();
  unwatched.length = 0;
}

function bodyTimeout(): Failure {
  return refusal({
    status: 408,
    code: "request_body_timeout",
    message: `The request body came too slowly (less than ${minBytesPerSpan} bytes in ${spanMs} ms).`,
  });
}
