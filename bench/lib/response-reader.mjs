/** Reads the responses on one connection and compares their bytes with what the provider sent. */

const headEnd = Buffer.from("\r\n\r\n");
const lineFeed = 10;

/** Beginning of an answer that is not the stream, for the message. */
const excerptBytes = 200;

export class ResponseReader {
  /** @type {Buffer | undefined} */
  #pending;
  #expected;
  #offset = 0;
  /** @type {"head" | "size" | "chunk" | "chunk-end" | "trailer" | "length" | "close" | "done"} */
  #state = "done";
  #left = 0;
  /** What is wrong; undefined: nothing so far. @type {string | undefined} */
  error;

  /** Payload bytes so far. */
  get bytes() {
    return this.#offset;
  }

  get done() {
    return this.#state === "done";
  }

  /** @param {Buffer} expected body of the next response */
  expect(expected) {
    this.#expected = expected;
    this.#offset = 0;
    this.#state = "head";
    this.#pending = undefined;
    this.error = undefined;
  }

  /** @param {Buffer} bytes */
  push(bytes) {
    const chunk = this.#pending === undefined ? bytes : Buffer.concat([this.#pending, bytes]);
    this.#pending = undefined;
    let at = 0;
    while (at < chunk.length && this.error === undefined) {
      const next = this.#step(chunk, at);
      if (next === -1) {
        this.#pending = chunk.subarray(at);
        return;
      }
      at = next;
    }
  }

  /** The connection was closed. */
  end() {
    if (this.#state === "close") this.#finish();
    else if (this.#state !== "done") this.error ??= `closed after ${this.#offset} of ${this.#expected.length} bytes`;
  }

  /**
   * @param {Buffer} chunk
   * @param {number} at
   * @returns {number} where to go on; -1: more bytes are needed
   */
  #step(chunk, at) {
    switch (this.#state) {
      case "head":
        return this.#head(chunk, at);
      case "size":
        return this.#size(chunk, at);
      case "chunk":
      case "length":
      case "close":
        return this.#payload(chunk, at);
      case "chunk-end":
        if (chunk.length < at + 2) return -1;
        this.#state = "size";
        return at + 2;
      case "trailer":
        if (chunk.length < at + 2) return -1;
        this.#finish();
        return at + 2;
      default:
        this.error = "bytes after the end";
        return chunk.length;
    }
  }

  #head(chunk, at) {
    const end = chunk.indexOf(headEnd, at);
    if (end === -1) return -1;
    const head = chunk.latin1Slice(at, end).toLowerCase();
    if (!head.startsWith("http/1.1 200")) {
      this.error = `not a 200: ${chunk.latin1Slice(at, at + excerptBytes)}`;
      return chunk.length;
    }
    const length = /\r\ncontent-length: *(\d+)/.exec(head)?.[1];
    if (head.includes("\r\ntransfer-encoding: chunked")) this.#state = "size";
    else if (length === undefined) this.#state = "close";
    else {
      this.#state = "length";
      this.#left = Number(length);
    }
    return end + 4;
  }

  #size(chunk, at) {
    const end = chunk.indexOf(lineFeed, at);
    if (end === -1) return -1;
    let size = 0;
    for (let index = at; index < end - 1; index += 1) {
      const digit = hexDigit(chunk[index]);
      if (digit === -1) break;
      size = size * 16 + digit;
    }
    this.#left = size;
    this.#state = size === 0 ? "trailer" : "chunk";
    return end + 1;
  }

  #payload(chunk, at) {
    const available = chunk.length - at;
    const length = this.#state === "close" ? available : Math.min(available, this.#left);
    const to = this.#offset + length;
    if (to > this.#expected.length || this.#expected.compare(chunk, at, at + length, this.#offset, to) !== 0) {
      this.error = `other bytes than were sent, at ${this.#offset}: ${chunk.latin1Slice(at, at + excerptBytes)}`;
      return chunk.length;
    }
    this.#offset = to;
    this.#left -= length;
    if (this.#left === 0) {
      if (this.#state === "chunk") this.#state = "chunk-end";
      else if (this.#state === "length") this.#finish();
    }
    return at + length;
  }

  #finish() {
    this.#state = "done";
    if (this.#offset !== this.#expected.length)
      this.error = `ended after ${this.#offset} of ${this.#expected.length} bytes`;
  }
}

function hexDigit(byte) {
  if (byte >= 48 && byte <= 57) return byte - 48;
  if (byte >= 97 && byte <= 102) return byte - 87;
  if (byte >= 65 && byte <= 70) return byte - 55;
  return -1;
}
