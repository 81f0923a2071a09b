/** A provider on a bare socket: it reads requests properly and answers with whatever bytes a test wants. */

import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { createServer } from "node:net";
import { onTestFinished } from "vitest";

export interface TcpRequest {
  /** Request line and headers. */
  readonly head: string;
  readonly body: Buffer;
}

export interface TcpProvider {
  readonly origin: string;
  readonly requests: readonly TcpRequest[];
  readonly open: number;
  /** Body bytes that were written, as far as the kernel took them. */
  readonly written: number;
  /** Settles once no connection is open. */
  closed(): Promise<void>;
}

export type Play = (socket: Socket, request: TcpRequest, index: number) => void;

/** @param keep false: heads and bodies are dropped, for tests that look at memory */
export async function tcpProvider(play: Play, keep = true): Promise<TcpProvider> {
  const requests: TcpRequest[] = [];
  const sockets = new Set<Socket>();
  let gone = 0;
  let wake = (): void => undefined;
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => {
      sockets.delete(socket);
      gone += socket.bytesWritten;
      wake();
    });
    let received = Buffer.alloc(0);
    let left = Infinity;
    socket.on("data", (bytes: Buffer) => {
      if (!keep) {
        if (left === Infinity) left = contentLength(bytes) + bytes.indexOf("\r\n\r\n") + 4;
        left -= bytes.length;
        if (left > 0) return;
        const request = { head: "", body: Buffer.alloc(0) };
        requests.push(request);
        return play(socket, request, requests.length - 1);
      }
      received = Buffer.concat([received, bytes]);
      for (let request = firstRequest(received); request !== undefined; request = firstRequest(received)) {
        received = received.subarray(request.length);
        requests.push(request);
        play(socket, request, requests.length - 1);
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    get open() {
      return sockets.size;
    },
    get written() {
      return [...sockets].reduce((sum, socket) => sum + socket.bytesWritten, gone);
    },
    closed: async () => {
      while (sockets.size > 0) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}

function firstRequest(received: Buffer): (TcpRequest & { readonly length: number }) | undefined {
  const end = received.indexOf("\r\n\r\n");
  if (end === -1) return undefined;
  const head = received.subarray(0, end).toString("latin1");
  const length = contentLength(received);
  const start = end + 4;
  if (received.length < start + length) return undefined;
  return { head, body: received.subarray(start, start + length), length: start + length };
}

function contentLength(bytes: Buffer): number {
  const head = bytes.subarray(0, bytes.indexOf("\r\n\r\n") + 2).toString("latin1");
  return Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
}

/** Writes `bytes` again and again until the other side closes. */
export function pour(socket: Socket, bytes: string | Uint8Array): void {
  const write = (): void => {
    while (!socket.destroyed && socket.writable && socket.write(bytes));
  };
  socket.on("drain", write);
  write();
}

export const streamHead = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
export const chunkedHead: string = `${streamHead}transfer-encoding: chunked\r\n\r\n`;
/** Ends with the connection. */
export const openHead: string = `${streamHead}connection: close\r\n\r\n`;

export function chunked(text: string): string {
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
}

export const preamble = 'data: {"choices":[{"delta":{"role":"assistant"}}]}\n\n';
export const output = 'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n';
export const done = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
export const healthyAnswer: string = `${chunkedHead}${chunked(preamble)}${chunked(output)}${chunked(done)}0\r\n\r\n`;
