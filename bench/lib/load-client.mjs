/**
 * The load client: raw sockets, so that it takes little of the core that it shares with the provider. A process of its
 * own, told what to do by messages, one at a time. It never measures the subject: that is the run's part.
 */

import { connect } from "node:net";
import { ResponseReader } from "./response-reader.mjs";
import { IDLE_LIMIT_MS, requestBytes, scriptOf } from "./streams.mjs";

/** Connections that are opened at the same time. */
const connectWidth = 64;

/** @typedef {{ port: number, path: string, headers: Record<string, string>, model: string, responseModel?: string }} Target */

class ClientConnection {
  /** @param {Target} target @param {number} [stallMs] a stream that brings nothing for this long is a failure */
  constructor(target, stallMs = 20_000) {
    this.request = requestBytes(target);
    this.script = scriptOf(target.responseModel ?? target.model);
    this.port = target.port;
    this.stallMs = stallMs;
    this.reader = new ResponseReader();
    /** @type {(() => void) | undefined} */
    this.onFirst = undefined;
    /** @type {((error: string | undefined) => void) | undefined} */
    this.settle = undefined;
    this.sentAt = 0;
    this.firstAt = 0;
  }

  open() {
    return new Promise((resolve, reject) => {
      this.socket = connect({ port: this.port, host: "127.0.0.1", noDelay: true });
      this.socket.once("connect", resolve);
      this.socket.on("error", (error) => {
        reject(error);
        this.finish(error.message);
      });
      this.socket.on("data", (chunk) => this.read(chunk));
      this.socket.on("close", () => {
        this.reader.end();
        this.finish(this.reader.done ? this.reader.error : (this.reader.error ?? "closed"));
      });
      const { stallMs } = this;
      this.socket.setTimeout(stallMs, () => this.socket.destroy(new Error(`nothing came for ${stallMs} ms`)));
    });
  }

  /** @returns {Promise<string | undefined>} what went wrong */
  async exchange() {
    if (this.socket === undefined || this.socket.destroyed) {
      try {
        await this.open();
      } catch (error) {
        return String(error);
      }
    }
    return new Promise((resolve) => {
      this.settle = resolve;
      this.reader.expect(this.script.body);
      this.firstAt = 0;
      this.sentAt = performance.now();
      this.socket.write(this.request);
    });
  }

  /** @param {Buffer} chunk */
  read(chunk) {
    const before = this.reader.bytes;
    this.reader.push(chunk);
    if (this.firstAt === 0 && this.reader.bytes > 0) {
      this.firstAt = performance.now();
      this.onFirst?.();
    }
    received += this.reader.bytes - before;
    if (this.reader.error !== undefined || this.reader.done) this.finish(this.reader.error);
  }

  /** @param {string | undefined} error */
  finish(error) {
    const { settle } = this;
    this.settle = undefined;
    if (error !== undefined) this.socket.destroy();
    settle?.(error);
  }

  close() {
    this.socket?.destroy();
  }
}

/** Payload bytes since the start of this process. */
let received = 0;
/** @type {string[]} */
let errors = [];
/** Streams that are open beside other work, and the promises of their ends. */
let background = [];

/** @param {string | undefined} error */
function note(error) {
  if (error !== undefined && errors.length < 20) errors.push(error);
  return error === undefined;
}

/**
 * Closed loop: each of the connections sends its next request when its stream has ended, for a time, or until a number of
 * streams.
 */
async function loop({ target, connections, durationMs, streams = Infinity }) {
  const times = [];
  const until = performance.now() + durationMs;
  const all = Array.from({ length: connections }, () => new ClientConnection(target));
  await Promise.all(
    all.map(async (connection) => {
      while (times.length < streams && performance.now() < until && errors.length < 20) {
        if (note(await connection.exchange())) times.push(performance.now() - connection.sentAt);
      }
      connection.close();
    }),
  );
  times.sort((a, b) => a - b);
  const at = (part) => times[Math.min(times.length - 1, Math.floor(times.length * part))] ?? 0;
  return { streams: times.length, events: times.length * all[0].script.events.length, p50: at(0.5), p99: at(0.99) };
}

/** One stream at a time, by turns direct and through the subject: how much later the first byte comes, pair by pair. */
async function firstByte({ target, direct, pairs }) {
  const subject = new ClientConnection(target);
  const reference = new ClientConnection(direct);
  const added = [];
  for (let pair = 0; pair < pairs && errors.length === 0; pair += 1) {
    const order = pair % 2 === 0 ? [reference, subject] : [subject, reference];
    for (const connection of order) note(await connection.exchange());
    added.push(subject.firstAt - subject.sentAt - (reference.firstAt - reference.sentAt));
  }
  subject.close();
  reference.close();
  return { added };
}

/** Opens streams that go on in the background. Answers when each of them has brought its first bytes. */
async function open({ target, streams }) {
  let next = 0;
  const one = async () => {
    while (next < streams) {
      next += 1;
      const connection = new ClientConnection(target, IDLE_LIMIT_MS + 20_000);
      const first = new Promise((resolve) => {
        connection.onFirst = resolve;
      });
      const end = connection.exchange().then((error) => {
        connection.close();
        note(error);
      });
      background.push(end);
      await Promise.race([first, end]);
    }
  };
  await Promise.all(Array.from({ length: Math.min(connectWidth, streams) }, one));
  return {};
}

/** Until the streams in the background have ended. */
async function settleAll() {
  await Promise.all(background);
  background = [];
  return {};
}

const commands = { loop, firstByte, open, settle: settleAll, count: () => ({}) };

process.on("message", async ({ id, command, options }) => {
  const result = await commands[command](options ?? {});
  process.send({ id, result: { ...result, received }, errors });
  errors = [];
});
process.on("disconnect", () => process.exit());
process.send({ type: "ready" });
