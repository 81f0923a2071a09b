/** An HTTP provider on loopback that does what a script says, and keeps what it was asked. */

import { once } from "node:events";
import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { Exchange } from "./exchange.js";
import type { ReceivedRequest } from "./exchange.js";
import type { Script } from "./script.js";

export type ScriptSource = Script | ((request: ReceivedRequest, index: number) => Script | Promise<Script>);

export interface ScriptedProvider {
  /** `http://127.0.0.1:port`, without a path. */
  readonly url: string;
  /** In the order in which their bodies were complete. */
  readonly requests: readonly ReceivedRequest[];
  /** Connections accepted so far. */
  readonly connections: number;
  /** Connections that are open now. */
  readonly openConnections: number;
  /** The request with this index, as soon as it has come. */
  request(index: number): Promise<ReceivedRequest>;
  /** Replaces the script for requests that come from now on. */
  use(script: ScriptSource): void;
  /** Destroys every connection and stops listening. Idempotent. */
  close(): Promise<void>;
}

/** Starts a provider on 127.0.0.1, at a port that the system picks. */
export async function startScriptedProvider(script: ScriptSource): Promise<ScriptedProvider> {
  const provider = new HttpScriptedProvider(script);
  await provider.listen();
  return provider;
}

/** A URL on loopback at which nobody listens: connections are refused. */
export async function refusedUrl(): Promise<string> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return `http://127.0.0.1:${port}`;
}

class HttpScriptedProvider implements ScriptedProvider {
  url = "";
  readonly requests: ReceivedRequest[] = [];
  connections = 0;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #waiting = new Map<number, ((request: ReceivedRequest) => void)[]>();
  #script: ScriptSource;
  #closing: Promise<void> | undefined;

  constructor(script: ScriptSource) {
    this.#script = script;
    this.#server = createServer((req, res) => void this.#serve(req, res));
    // A test's request may be slow on purpose.
    this.#server.requestTimeout = 0;
    this.#server.keepAliveTimeout = 60_000;
    this.#server.on("connection", (socket) => this.#track(socket));
    this.#server.on("clientError", (_error, socket) => socket.destroy());
  }

  get openConnections(): number {
    return this.#sockets.size;
  }

  async listen(): Promise<void> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    this.url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  request(index: number): Promise<ReceivedRequest> {
    const known = this.requests[index];
    if (known !== undefined) return Promise.resolve(known);
    return new Promise((resolve) => {
      this.#waiting.set(index, [...(this.#waiting.get(index) ?? []), resolve]);
    });
  }

  use(script: ScriptSource): void {
    this.#script = script;
  }

  close(): Promise<void> {
    this.#closing ??= new Promise((resolve) => {
      this.#server.close(() => resolve());
      for (const socket of this.#sockets) socket.destroy();
    });
    return this.#closing;
  }

  #track(socket: Socket): void {
    this.connections += 1;
    this.#sockets.add(socket);
    // One listener for each request that a kept-alive connection carries.
    socket.setMaxListeners(0);
    socket.on("error", () => {});
    socket.on("close", () => this.#sockets.delete(socket));
  }

  async #serve(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const body = await readBody(req);
    // The client left while it was sending: there is no request.
    if (body === undefined) return;
    const exchange = new Exchange(this.requests.length, req, res, body);
    this.requests.push(exchange);
    for (const resolve of this.#waiting.get(exchange.index) ?? []) resolve(exchange);
    this.#waiting.delete(exchange.index);
    try {
      const source = this.#script;
      await exchange.play(typeof source === "function" ? await source(exchange, exchange.index) : source);
    } catch (error) {
      // A mistake in the script: shown to the client, so that the test sees it.
      if (!res.headersSent) res.writeHead(500, { "content-type": "text/plain" });
      res.end(`The script failed: ${String(error)}`);
    }
  }
}

async function readBody(req: IncomingMessage): Promise<Buffer | undefined> {
  const parts: Buffer[] = [];
  try {
    for await (const part of req) parts.push(part as Buffer);
  } catch {
    return undefined;
  }
  return Buffer.concat(parts);
}
