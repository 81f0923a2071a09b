/**
 * The scripted provider: HTTP/1.1 by hand over `net`, every byte made before the run, so that what it costs is small and
 * the same for all subjects. A process of its own.
 */

import { createServer } from "node:net";
import { failure, IDLE_LIMIT_MS, PACE_MS, scriptOf } from "./streams.mjs";

const headEnd = Buffer.from("\r\n\r\n");
const lastChunk = Buffer.from("0\r\n\r\n");
const badRequest = Buffer.from("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");

/** Paced streams, by the millisecond of the period in which their events are due: each event is a packet of its own. */
const slots = Array.from({ length: PACE_MS }, () => new Set());
let nextSlot = 0;
/** Idle streams that wait for their end. */
const idle = new Set();

class ProviderConnection {
  /** @param {import("node:net").Socket} socket */
  constructor(socket) {
    this.socket = socket;
    /** @type {Buffer | undefined} */
    this.received = undefined;
    this.slot = -1;
    this.position = 0;
    this.script = undefined;
    this.timer = undefined;
    socket.setNoDelay(true);
    socket.on("data", (chunk) => this.read(chunk));
    socket.on("error", () => socket.destroy());
    socket.on("close", () => this.stop());
  }

  /** @param {Buffer} chunk */
  read(chunk) {
    const all = this.received === undefined ? chunk : Buffer.concat([this.received, chunk]);
    const request = parse(all);
    this.received = request === undefined ? all : undefined;
    if (request !== undefined) this.answer(request);
  }

  /** @param {{ model: string, fails: boolean }} request */
  answer({ model, fails }) {
    const script = fails ? failure : scriptOf(model);
    if (script === undefined) {
      this.socket.end(badRequest);
      return;
    }
    if (script.delivery === "burst") {
      this.socket.write(script.wire);
      return;
    }
    this.script = script;
    this.position = 1;
    this.socket.write(script.pieces[0]);
    if (script.delivery === "paced") {
      this.slot = nextSlot;
      nextSlot = (nextSlot + 1) % PACE_MS;
      slots[this.slot].add(this);
      return;
    }
    idle.add(this);
    this.timer = setTimeout(() => this.finish(), IDLE_LIMIT_MS);
  }

  /** The next event of a paced stream. */
  tick() {
    const { pieces } = this.script;
    this.socket.write(pieces[this.position]);
    this.position += 1;
    if (this.position === pieces.length) this.stop();
  }

  /** The rest of an idle stream at once. */
  finish() {
    const rest = this.script.pieces.slice(this.position);
    this.stop();
    this.socket.write(Buffer.concat(rest));
  }

  stop() {
    if (this.slot >= 0) slots[this.slot].delete(this);
    this.slot = -1;
    idle.delete(this);
    clearTimeout(this.timer);
  }
}

/**
 * One whole request, or undefined where more has to come. Subjects do not pipeline.
 *
 * @param {Buffer} bytes
 */
function parse(bytes) {
  const end = bytes.indexOf(headEnd);
  if (end === -1) return undefined;
  const head = bytes.latin1Slice(0, end);
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (length === undefined ? bytes.indexOf(lastChunk, end) === -1 : bytes.length < end + 4 + Number(length))
    return undefined;
  const model = /"model": ?"([^"]*)"/.exec(bytes.latin1Slice(end))?.[1] ?? "";
  return { model, fails: head.startsWith("POST /failing/") };
}

let turn = 0;
let turnedAt = performance.now();
/** One slot a millisecond; where the timer was late, those that it missed. */
function turnWheel() {
  const due = Math.floor(performance.now() - turnedAt);
  for (let step = 0; step < Math.min(due, PACE_MS); step += 1) {
    for (const connection of slots[turn]) connection.tick();
    turn = (turn + 1) % PACE_MS;
  }
  turnedAt += due;
}
setInterval(turnWheel, 1);

process.on("message", (message) => {
  if (message.type !== "finish-idle") return;
  for (const connection of idle) connection.finish();
});
process.on("disconnect", () => process.exit());

const server = createServer((socket) => void new ProviderConnection(socket));
server.listen(0, "127.0.0.1", 4096, () => process.send({ type: "listening", port: server.address().port }));
