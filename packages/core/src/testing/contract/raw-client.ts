/** A client on a bare socket: it sees every byte, and whether the response was ended or broken off. */

import { once } from "node:events";
import { connect } from "node:net";
import type { Socket } from "node:net";

export interface RawRequest {
  /** Default POST. */
  readonly method?: string;
  /** Path and query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Sends the body chunked, so that its length is not announced. */
  readonly chunked?: boolean;
}

export interface Answer {
  readonly status: number;
  /** Lower-case name and value, one pair a field line. */
  readonly headers: readonly (readonly [string, string])[];
  readonly body: Buffer;
  /** The body came whole: its length, or the last chunk of a chunked body. */
  readonly complete: boolean;
}

/** The value of a header that is expected once; several lines are joined with a comma. */
export function headerOf(answer: Answer, name: string): string | undefined {
  const values = answer.headers.filter(([field]) => field === name).map(([, value]) => value);
  return values.length === 0 ? undefined : values.join(", ");
}

export class RawClient {
  readonly socket: Socket;
  /** Settles when the connection is over, however it ended. */
  readonly closed: Promise<void>;
  #received: Buffer[] = [];
  #receivedBytes = 0;
  #wake: () => void = () => {};

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("error", () => {});
    socket.on("data", (data) => {
      this.#received.push(data);
      this.#receivedBytes += data.length;
      this.#wake();
    });
    this.closed = new Promise((resolve) => {
      socket.once("close", () => {
        this.#wake();
        resolve();
      });
    });
  }

  /** Connects and sends one request, which asks the server to close the connection after its answer. */
  static async send(url: string, request: RawRequest): Promise<RawClient> {
    const { hostname, port, host } = new URL(url);
    const socket = connect(Number(port), hostname);
    const client = new RawClient(socket);
    await once(socket, "connect");
    socket.write(encode(request, host));
    return client;
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#received);
  }

  get byteLength(): number {
    return this.#receivedBytes;
  }

  /** Settles once the bytes so far contain the text; rejects when the connection ends before. */
  async waitFor(text: string): Promise<void> {
    while (!this.bytes.includes(text)) {
      if (this.socket.destroyed) throw new Error(`The connection ended before ${JSON.stringify(text)} came`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  /** The whole answer, once the connection is over. */
  async answer(): Promise<Answer> {
    await this.closed;
    return decode(this.bytes);
  }

  /** Leaves, as a closed browser tab does. */
  leave(): void {
    this.socket.destroy();
  }
}

/** Sends one request and waits for the end of its answer. */
export async function ask(url: string, request: RawRequest): Promise<Answer> {
  return (await RawClient.send(url, request)).answer();
}

function encode(request: RawRequest, host: string): Buffer {
  const { method = "POST", path, headers = {}, body, chunked = false } = request;
  const bytes = Buffer.from(body ?? "");
  const lines = [`${method} ${path} HTTP/1.1`, `host: ${host}`, "connection: close"];
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
  if (chunked) lines.push("transfer-encoding: chunked");
  else if (body !== undefined) lines.push(`content-length: ${bytes.length}`);
  const parts: (string | Buffer)[] = [`${lines.join("\r\n")}\r\n\r\n`];
  if (chunked) parts.push(`${bytes.length.toString(16)}\r\n`, bytes, "\r\n0\r\n\r\n");
  else parts.push(bytes);
  return Buffer.concat(parts.map((part) => Buffer.from(part as string)));
}

function decode(bytes: Buffer): Answer {
  const headEnd = bytes.indexOf("\r\n\r\n");
  if (headEnd === -1) return { status: 0, headers: [], body: Buffer.alloc(0), complete: false };
  const [statusLine = "", ...fields] = bytes.subarray(0, headEnd).toString("latin1").split("\r\n");
  const headers = fields.map((line): readonly [string, string] => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  const rest = bytes.subarray(headEnd + 4);
  const status = Number(statusLine.split(" ")[1]);
  const value = (name: string): string | undefined => headers.find(([field]) => field === name)?.[1];
  if (value("transfer-encoding") === "chunked") return { status, headers, ...dechunk(rest) };
  const length = value("content-length");
  return { status, headers, body: rest, complete: length !== undefined && rest.length === Number(length) };
}

function dechunk(bytes: Buffer): { body: Buffer; complete: boolean } {
  const parts: Buffer[] = [];
  for (let at = 0; ;) {
    const lineEnd = bytes.indexOf("\r\n", at);
    if (lineEnd === -1) return { body: Buffer.concat(parts), complete: false };
    const size = Number.parseInt(bytes.subarray(at, lineEnd).toString("latin1"), 16);
    if (size === 0) return { body: Buffer.concat(parts), complete: true };
    const start = lineEnd + 2;
    parts.push(bytes.subarray(start, start + size));
    if (start + size > bytes.length) return { body: Buffer.concat(parts), complete: false };
    at = start + size + 2;
  }
}
