/** A TCP server on loopback that writes bytes, not HTTP: for answers that an HTTP server would not send. */

import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { createServer } from "node:net";
import { onTestFinished } from "vitest";

export interface RawConnection {
  readonly socket: Socket;
  /** All that came over this connection. */
  received: string;
  /** Requests with a complete JSON body, `{}`, or without a body. */
  requests: number;
  readonly closed: Promise<void>;
}

export interface RawServer {
  readonly origin: string;
  readonly connections: RawConnection[];
  /** Requests over all connections. */
  readonly requests: number;
  connection(index: number): Promise<RawConnection>;
}

/** @param answer called for each complete request, counted from 1 over the connection */
export async function rawServer(
  answer: (connection: RawConnection, request: number, connectionIndex: number) => void,
): Promise<RawServer> {
  const connections: RawConnection[] = [];
  const waiting: { index: number; resolve: (connection: RawConnection) => void }[] = [];
  const server = createServer((socket) => {
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    const connection: RawConnection = { socket, received: "", requests: 0, closed };
    const index = connections.push(connection) - 1;
    socket.on("error", () => undefined);
    socket.on("data", (bytes: Buffer) => {
      connection.received += bytes.toString("latin1");
      const requests = connection.received.split("\r\n\r\n{}").length - 1;
      while (connection.requests < requests) answer(connection, ++connection.requests, index);
    });
    for (const wait of waiting) if (wait.index === index) wait.resolve(connection);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    for (const { socket } of connections) socket.destroy();
    server.close();
  });
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    connections,
    get requests() {
      return connections.reduce((sum, { requests }) => sum + requests, 0);
    },
    connection: (index) =>
      new Promise((resolve) => {
        const found = connections[index];
        if (found === undefined) waiting.push({ index, resolve });
        else resolve(found);
      }),
  };
}

export const okHead = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
export const okAnswer = `${okHead}content-length: 2\r\n\r\nok`;
