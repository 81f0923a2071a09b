/**
 * Bytes to frames for the AWS event stream framing (`application/vnd.amazon.eventstream`), and one message the other way.
 *
 * A message is a prelude (length of the message, length of its headers, CRC-32 of both), headers, a payload, and the
 * CRC-32 of all that. https://smithy.io/2.0/aws/amazon-eventstream.html
 */

import { EventStreamCodec, type Message } from "@smithy/eventstream-codec";
import { ByteBuffer, decodeText } from "./byte-buffer.js";
import type { Frame, FrameDecoder } from "./frame.js";
import { createStreamDecoder } from "./frames.js";

const preludeBytes = 12;
/** Prelude and the CRC at the end. */
const overheadBytes = preludeBytes + 4;
/** The limits of the framing: 128 KiB of headers, 16 MiB of payload. */
const maxHeaderBytes = 131_072;
const maxMessageBytes = 16_777_216 + maxHeaderBytes + overheadBytes;

/** Name of the event that stands for bytes which are not the framing: no event of AWS begins with a colon. */
export const brokenFraming: string = ":broken-framing";

/**
 * For protocols in the AWS framing. Messages of type `event` become events named by their `:event-type`; `exception` and
 * `error` become an event named `error` with the data `{"error": {"code", "message"}}`. After a wrong checksum or an
 * impossible length comes one event named {@link brokenFraming}, and nothing more. A body that cannot be in the framing,
 * since its first bytes would be a length beyond all limits, is read as text: proxies answer JSON and HTML.
 */
export function createAwsDecoder(): FrameDecoder {
  return new AwsFrames();
}

class AwsFrames implements FrameDecoder {
  readonly #partial: ByteBuffer = new ByteBuffer();
  /** Length of the message under way, once its prelude is whole and sound. */
  #length = 0;
  #start = 0;
  #broken = false;
  #text: FrameDecoder | undefined;
  #begun = false;

  get pendingBytes(): number {
    return this.#text === undefined ? this.#partial.length : this.#text.pendingBytes;
  }

  push(chunk: Uint8Array): Frame[] {
    if (!this.#begun && chunk.length > 0) {
      this.#begun = true;
      // The high byte of a length: at most 1 within the limits, and no text begins with that.
      if ((chunk[0] as number) > 1) this.#text = createStreamDecoder();
    }
    if (this.#text !== undefined) return this.#text.push(chunk);
    const frames: Frame[] = [];
    let at = 0;
    while (!this.#broken && at < chunk.length) at = this.#take(chunk, at, frames);
    return frames;
  }

  /** A message that was cut short says nothing. */
  end(): Frame[] {
    return this.#text?.end() ?? [];
  }

  /** Takes bytes up to the end of the prelude or of the message. @returns the index after them */
  #take(chunk: Uint8Array, from: number, frames: Frame[]): number {
    const wanted = this.#length === 0 ? preludeBytes : this.#length;
    const to = Math.min(chunk.length, from + wanted - this.#partial.length);
    this.#partial.append(chunk, from, to);
    if (this.#partial.length < wanted) return to;
    if (this.#length === 0) {
      this.#length = messageLength(this.#partial.bytes) ?? 0;
      if (this.#length === 0) this.#break(preludeBytes, frames);
      return to;
    }
    const frame = decode(this.#partial.bytes.subarray(0, this.#length));
    if (frame === undefined) {
      this.#break(this.#length, frames);
      return to;
    }
    const end = this.#start + this.#length;
    frames.push({ kind: "event", ...frame, start: this.#start, end });
    this.#partial.clear();
    this.#length = 0;
    this.#start = end;
    return to;
  }

  #break(length: number, frames: Frame[]): void {
    this.#broken = true;
    this.#partial.clear();
    frames.push({
      kind: "event",
      event: brokenFraming,
      data: brokenFraming,
      start: this.#start,
      end: this.#start + length,
    });
  }
}

/** Undefined: no message has such a prelude. */
function messageLength(prelude: Uint8Array): number | undefined {
  const view = new DataView(prelude.buffer, prelude.byteOffset, preludeBytes);
  const length = view.getUint32(0);
  const headers = view.getUint32(4);
  if (
    length < overheadBytes ||
    length > maxMessageBytes ||
    headers > maxHeaderBytes ||
    headers > length - overheadBytes
  )
    return undefined;
  // Checked here as well: the codec wants the whole message, and a wrong length could keep it waiting for megabytes.
  return view.getUint32(8) === crc32(prelude.subarray(0, 8)) ? length : undefined;
}

/** Bit by bit: enough for the eight bytes it is for. */
function crc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}

const encoder = new TextEncoder();
const codec = new EventStreamCodec(
  (bytes) => (typeof bytes === "string" ? bytes : decodeText(bytes, 0, bytes.length)),
  (text) => encoder.encode(text),
);

function decode(message: Uint8Array): { event: string; data: string } | undefined {
  let decoded: Message;
  try {
    decoded = codec.decode(message);
  } catch {
    return undefined;
  }
  const { headers, body } = decoded;
  const data = decodeText(body, 0, body.length);
  switch (header(headers, ":message-type")) {
    case "exception":
      return errorEvent(header(headers, ":exception-type"), messageIn(data));
    case "error":
      return errorEvent(header(headers, ":error-code"), header(headers, ":error-message") ?? messageIn(data));
    default:
      return { event: header(headers, ":event-type") ?? "", data };
  }
}

function header(headers: Message["headers"], name: string): string | undefined {
  const value = Object.hasOwn(headers, name) ? headers[name]?.value : undefined;
  return typeof value === "string" ? value : undefined;
}

function errorEvent(code: string | undefined, message: string | undefined): { event: string; data: string } {
  return { event: "error", data: JSON.stringify({ error: { code, message } }) };
}

/** Nothing but the message of an exception counts: `originalStatusCode` is the status of another system. */
function messageIn(data: string): string | undefined {
  try {
    const value = JSON.parse(data) as { message?: unknown; Message?: unknown } | null;
    const message = value?.message ?? value?.Message;
    return typeof message === "string" ? message : undefined;
  } catch {
    return undefined;
  }
}

/** One message of type `exception`. @param type as the API's stream names it, e.g. `throttlingException` */
export function encodeAwsException(type: string, payload: unknown): Uint8Array {
  return codec.encode({
    headers: {
      ":exception-type": { type: "string", value: type },
      ":content-type": { type: "string", value: "application/json" },
      ":message-type": { type: "string", value: "exception" },
    },
    body: encoder.encode(JSON.stringify(payload)),
  });
}
