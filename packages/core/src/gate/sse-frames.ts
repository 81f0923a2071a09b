/**
 * Server-sent events, by the rules of https://html.spec.whatwg.org/multipage/server-sent-events.html, and a second look
 * at the lines which those rules ignore: providers write errors there.
 *
 * Not eventsource-parser: it takes decoded text, does not say where an event lies in the bytes, and drops what the second
 * look is for. A differential test holds the two together.
 */

import { ByteBuffer, decodeText } from "./byte-buffer.js";
import type { Frame } from "./frame.js";
import { BareJson, isWholeJson, opensJson } from "./json-frames.js";

const tab = 0x09;
const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const space = 0x20;
const colon = 0x3a;

const dataName: Uint8Array = new Uint8Array([0x64, 0x61, 0x74, 0x61]);
const eventName: Uint8Array = new Uint8Array([0x65, 0x76, 0x65, 0x6e, 0x74]);
const errorName: Uint8Array = new Uint8Array([0x65, 0x72, 0x72, 0x6f, 0x72]);
const idName: Uint8Array = new Uint8Array([0x69, 0x64]);
const retryName: Uint8Array = new Uint8Array([0x72, 0x65, 0x74, 0x72, 0x79]);

export class SseFrames {
  /** The part of the line under way that came in earlier chunks. */
  readonly #partial: ByteBuffer = new ByteBuffer();
  #lineStart: number = 0;
  /** The last byte was a CR, which ended its line. A LF that follows belongs to it. */
  #afterReturn: boolean = false;

  #eventStart: number = -1;
  #name: string = "";
  #nameBytes: number = 0;
  #dataLines: number = 0;
  /** The first data line as text: most events have no other. */
  #first: string = "";
  /** The name that stood before it. */
  #firstName: string = "";
  #firstBytes: number = 0;
  #firstStart: number = 0;
  #firstEnd: number = 0;
  /** Every further data line, each after a line feed. As bytes: a string a line would cost far more than is counted. */
  readonly #rest: ByteBuffer = new ByteBuffer();
  #lineMode: boolean = false;

  #bare: BareJson | undefined;
  /** Where the first line lies that is neither a field nor JSON, or -1. */
  #textStart: number = -1;
  #delivered: boolean = false;

  get pendingBytes(): number {
    // Each data line counts its joining line feed, so that empty ones cannot go on for ever either.
    const first = this.#dataLines === 0 ? 0 : this.#firstBytes + 1;
    const bare = this.#bare === undefined ? 0 : this.#bare.pendingBytes;
    return this.#partial.length + this.#nameBytes + first + this.#rest.length + bare;
  }

  /** @param base offset of `chunk[0]` in the stream */
  push(chunk: Uint8Array, from: number, base: number, frames: Frame[]): void {
    const length = chunk.length;
    let position = from;
    if (this.#afterReturn && position < length) {
      this.#afterReturn = false;
      if (chunk[position] === lineFeed) position += 1;
    }
    if (this.#partial.length === 0) this.#lineStart = base + position;
    // Both searches go on from where they stopped: a chunk without a CR is searched for it once, not once a line.
    let feed = -1;
    let ret = -1;
    for (;;) {
      if (feed < position) feed = indexOrEnd(chunk, lineFeed, position);
      if (ret < position) ret = indexOrEnd(chunk, carriageReturn, position);
      const lineEnd = feed < ret ? feed : ret;
      if (lineEnd === length) break;
      if (this.#partial.length === 0) {
        this.#line(chunk, position, lineEnd, base + lineEnd + 1, frames);
      } else {
        this.#partial.append(chunk, position, lineEnd);
        this.#line(this.#partial.bytes, 0, this.#partial.length, base + lineEnd + 1, frames);
        this.#partial.clear();
      }
      position = lineEnd + 1;
      if (lineEnd === ret) {
        if (position === length) this.#afterReturn = true;
        else if (chunk[position] === lineFeed) position += 1;
      }
      this.#lineStart = base + position;
    }
    if (position < length) this.#partial.append(chunk, position, length);
  }

  end(total: number, frames: Frame[]): void {
    if (this.#partial.length > 0) {
      this.#line(this.#partial.bytes, 0, this.#partial.length, total, frames);
      this.#partial.clear();
    }
    this.#blankLine(total, frames);
    if (this.#bare?.collecting) {
      this.#bare.end(total, frames);
      this.#delivered = true;
    }
    if (this.#textStart >= 0 && !this.#delivered) {
      frames.push({ kind: "foreign", start: this.#textStart, end: total });
    }
  }

  /** @param lineEnd offset after the byte that ended the line (after the CR of a CRLF: the LF may not be there yet) */
  #line(bytes: Uint8Array, start: number, end: number, lineEnd: number, frames: Frame[]): void {
    if (start === end) {
      // Inside bare JSON too: events are what a strict parser sees, whatever stands between them.
      this.#blankLine(lineEnd, frames);
      return;
    }
    switch (bytes[start]) {
      case colon:
        this.#bare?.drop();
        frames.push({ kind: "comment", start: this.#lineStart, end: lineEnd });
        return;
      case 0x64: // d
        if (!isField(bytes, start, end, dataName)) break;
        this.#dataLine(bytes, valueStart(bytes, start + 4, end), end, lineEnd, frames);
        return;
      case 0x65: // e
        if (isField(bytes, start, end, eventName)) {
          const nameStart = valueStart(bytes, start + 5, end);
          this.#beginField();
          this.#name = decodeText(bytes, nameStart, end);
          // The name before the first data line is kept as well.
          this.#nameBytes = (this.#dataLines > 0 ? this.#nameBytes : 0) + end - nameStart;
          return;
        }
        if (!isField(bytes, start, end, errorName)) break;
        this.#errorLine(bytes, valueStart(bytes, start + 5, end), end, lineEnd, frames);
        return;
      case 0x69: // i
        if (!isField(bytes, start, end, idName)) break;
        this.#beginField();
        return;
      case 0x72: // r
        if (!isField(bytes, start, end, retryName)) break;
        this.#beginField();
        return;
    }
    this.#ignoredLine(bytes, start, end, frames);
  }

  #beginField(): void {
    this.#bare?.drop();
    if (this.#eventStart < 0) this.#eventStart = this.#lineStart;
  }

  #dataLine(bytes: Uint8Array, start: number, end: number, lineEnd: number, frames: Frame[]): void {
    this.#beginField();
    if (this.#dataLines === 0) {
      this.#first = decodeText(bytes, start, end);
      this.#firstName = this.#name;
      this.#firstBytes = end - start;
      this.#firstStart = this.#lineStart;
      this.#firstEnd = lineEnd;
    } else {
      if (this.#dataLines === 1 && isWholeJson(this.#first)) {
        this.#lineMode = true;
        this.#pushLine(this.#firstName, this.#first, this.#firstStart, this.#firstEnd, frames);
      }
      if (this.#lineMode) {
        this.#pushLine(this.#name, decodeText(bytes, start, end), this.#lineStart, lineEnd, frames);
      }
      this.#rest.appendByte(lineFeed);
      this.#rest.append(bytes, start, end);
    }
    this.#dataLines += 1;
  }

  #pushLine(event: string, data: string, start: number, end: number, frames: Frame[]): void {
    frames.push({ kind: "event", event, data, line: true, start, end });
  }

  #errorLine(bytes: Uint8Array, start: number, end: number, lineEnd: number, frames: Frame[]): void {
    this.#bare?.drop();
    const data = decodeText(bytes, start, end);
    frames.push({ kind: "stray", data, field: true, start: this.#lineStart, end: lineEnd });
    this.#delivered = true;
  }

  #blankLine(lineEnd: number, frames: Frame[]): void {
    if (this.#dataLines > 0) {
      const data = this.#dataLines === 1 ? this.#first : this.#first + this.#rest.text();
      frames.push({ kind: "event", event: this.#name, data, start: this.#eventStart, end: lineEnd });
      this.#delivered = true;
      this.#dataLines = 0;
      this.#first = this.#firstName = "";
      this.#rest.clear();
      this.#lineMode = false;
    }
    this.#eventStart = -1;
    this.#name = "";
    this.#nameBytes = 0;
  }

  /** A line that is no field known to the SSE rules. */
  #ignoredLine(bytes: Uint8Array, start: number, end: number, frames: Frame[]): void {
    let index = start;
    while (index < end && (bytes[index] === space || bytes[index] === tab)) index += 1;
    if (this.#bare?.collecting || (index < end && opensJson(bytes[index]))) {
      const before = frames.length;
      this.#bare ??= new BareJson();
      this.#bare.line(bytes, start, end, this.#lineStart, frames);
      if (frames.length > before) this.#delivered = true;
    } else if (index < end && this.#textStart < 0) {
      this.#textStart = this.#lineStart;
    }
  }
}

function indexOrEnd(chunk: Uint8Array, byte: number, from: number): number {
  const index = chunk.indexOf(byte, from);
  return index < 0 ? chunk.length : index;
}

/** Whether the line is the field `name`, followed by a colon or nothing. */
function isField(bytes: Uint8Array, start: number, end: number, name: Uint8Array): boolean {
  const nameEnd = start + name.length;
  if (nameEnd > end || (nameEnd < end && bytes[nameEnd] !== colon)) return false;
  for (let index = 0; index < name.length; index++) {
    if (bytes[start + index] !== name[index]) return false;
  }
  return true;
}

/** Behind the colon and one space, if they are there. */
function valueStart(bytes: Uint8Array, nameEnd: number, end: number): number {
  if (nameEnd === end) return end;
  const start = nameEnd + 1;
  return start < end && bytes[start] === space ? start + 1 : start;
}
