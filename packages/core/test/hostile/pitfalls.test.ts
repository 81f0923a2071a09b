/** Traps of proxies that no other test of ours stands for; `pitfalls.test.ts` one folder up lists all of them. */

import { EventEmitter, getEventListeners, once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createServer as createTlsServer } from "node:tls";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { createGateway } from "../../src/gateway.js";
import { createNodeHandler } from "../../src/http/node-handler.js";
import type { GatewayRequest } from "../../src/request.js";
import { ask, RawClient } from "../../src/testing/contract/raw-client.js";
import { selfSigned } from "../fixtures/self-signed.js";
import { serving } from "../http/serving.js";
import { chunked, chunkedHead, healthyAnswer, output, preamble, tcpProvider } from "./tcp-provider.js";
import { chatBody, provider, world } from "./world.js";

const request = (signal: AbortSignal): GatewayRequest => ({
  method: "POST",
  url: "/v1/chat/completions",
  headers: { "content-type": "application/json" },
  body: Buffer.from(chatBody),
  signal,
});

describe("pitfall 30: what a client says of itself", () => {
  it("is nowhere in the records", async () => {
    const upstream = await tcpProvider((socket) => void socket.write(healthyAnswer));
    const { ask: send, observed } = await world({ providers: { p: provider(upstream.origin) } });
    await send({
      headers: { "x-forwarded-for": "203.0.113.7", forwarded: "for=203.0.113.7", "x-real-ip": "203.0.113.7" },
    });
    expect(JSON.stringify(observed)).not.toContain("203.0.113.7");
    expect(upstream.requests[0]?.head).not.toContain("203.0.113.7");
  });
});

describe("pitfall 40: a provider whose certificate nobody vouches for", () => {
  it("gets no request, and the client a 502", async () => {
    let received = 0;
    const server = createTlsServer({ ...selfSigned }, (socket) =>
      socket.on("data", () => (received += 1)).on("error", () => undefined),
    );
    server.on("tlsClientError", () => undefined);
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const { ask: send, observed } = await world({
      providers: { p: provider(`https://localhost:${(server.address() as AddressInfo).port}`) },
    });
    expect((await send()).status).toBe(502);
    expect(observed.find((event) => event.type === "attempt-reject")).toMatchObject({
      failure: { cause: { code: "DEPTH_ZERO_SELF_SIGNED_CERT" } },
    });
    expect(received).toBe(0);
  });
});

describe("pitfall 93: HTTP/2 to a provider", () => {
  it("is not offered", async () => {
    const offered = new Promise<string[]>((resolve) => {
      const ALPNCallback = ({ protocols }: { protocols: string[] }): string | undefined => {
        resolve(protocols);
        return protocols[0];
      };
      const server = createTlsServer({ ...selfSigned, ALPNCallback } as object);
      server.on("tlsClientError", () => undefined);
      server.listen(0, "127.0.0.1", () => {
        const { port } = server.address() as AddressInfo;
        onTestFinished(() => void server.close());
        void world({ providers: { p: provider(`https://localhost:${port}`) } }).then(({ ask: send }) =>
          send().then(() => resolve([])),
        );
      });
    });
    expect(await offered).not.toContain("h2");
  });
});

describe("pitfall 75: two ends in one tick", () => {
  it("give one answer", async () => {
    // The head, an error event, the end of the body and a reset, in one write.
    const error = 'data: {"error":{"message":"Broke.","type":"server_error"}}\n\n';
    const upstream = await tcpProvider((socket) => {
      socket.write(`${chunkedHead}${chunked(error)}0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n`);
      socket.resetAndDestroy();
    });
    const { ask: send, observed } = await world({ providers: { p: provider(upstream.origin) } });
    for (let round = 0; round < 20; round += 1) {
      const answer = await send();
      expect([500, 502]).toContain(answer.status);
      expect(answer.complete).toBe(true);
    }
    expect(observed.filter((event) => event.type === "request-end")).toHaveLength(20);
  });
});

describe("pitfall 76: next()", () => {
  it("is called once for what is not the gateway's, and never for what is, whatever becomes of it", async () => {
    const scripts = [healthyAnswer, chunkedHead + chunked(preamble), `${chunkedHead}${chunked(output)}zz`, "nonsense"];
    const upstream = await tcpProvider((socket, _request, index) => void socket.end(scripts[index % scripts.length]));
    const gateway = createGateway({
      providers: { p: provider(upstream.origin) },
      models: { m: { targets: [{ target: "p/x" }] } },
      retry: { attempts: 0 },
      cooldown: false,
    });
    onTestFinished(() => gateway.close({ graceMs: 0 }));
    const calls = new Map<IncomingMessage, number>();
    const handle = createNodeHandler(gateway);
    const url = await serving((req: IncomingMessage, res: ServerResponse) => {
      calls.set(req, 0);
      handle(req, res, () => {
        calls.set(req, (calls.get(req) ?? 0) + 1);
        res.end("host");
      });
    });
    for (let round = 0; round < 8; round += 1)
      await ask(url, { path: "/v1/chat/completions", headers: { "content-type": "application/json" }, body: chatBody });
    await ask(url, { path: "/v1/chat/completions", headers: { "content-type": "application/json" }, body: "{" });
    expect([...calls.values()]).toEqual(Array.from({ length: 9 }, () => 0));
    await ask(url, { path: "/orders" });
    expect([...calls.values()].at(-1)).toBe(1);
  });
});

describe("pitfall 85: one signal for many requests", () => {
  it("keeps no listener of any of them", async () => {
    const scripts = [healthyAnswer, `${chunkedHead}${chunked(preamble)}0\r\n\r\n`];
    const upstream = await tcpProvider((socket, _request, index) => void socket.write(scripts[index % 2] ?? ""));
    const { gateway, ended } = await world({ providers: { p: provider(upstream.origin) } });
    const shared = new AbortController();
    EventEmitter.setMaxListeners(100, shared.signal);
    for (let round = 0; round < 50; round += 1) {
      await Promise.all(
        Array.from({ length: 20 }, async () => {
          for await (const event of gateway.handle(request(shared.signal))) {
            if (event.type === "released") for await (const _chunk of event.body);
          }
        }),
      );
    }
    await ended(1000);
    expect(getEventListeners(shared.signal, "abort")).toHaveLength(0);
  });
});

describe("pitfall 86: a process that wants to end", () => {
  it("is kept by nothing of a request that is over, although idle connections are", async () => {
    const upstream = await tcpProvider((socket) => void socket.write(healthyAnswer));
    const gateway = createGateway({
      providers: { p: provider(upstream.origin) },
      models: { m: { targets: [{ target: "p/x" }] } },
    });
    onTestFinished(() => gateway.close({ graceMs: 0 }));
    const counted = (): Record<string, number> => {
      const counts: Record<string, number> = {};
      for (const name of process.getActiveResourcesInfo()) counts[name] = (counts[name] ?? 0) + 1;
      return counts;
    };
    const before = counted();
    for await (const event of gateway.handle(request(new AbortController().signal))) {
      if (event.type === "released") for await (const _chunk of event.body);
    }
    // The provider's end of the idle connection is in this process, too; ours does not count.
    await sleep(20);
    const after = counted();
    expect(after["Timeout"] ?? 0).toBeLessThanOrEqual(before["Timeout"] ?? 0);
    expect((after["TCPSocketWrap"] ?? 0) - (before["TCPSocketWrap"] ?? 0)).toBeLessThanOrEqual(1);
  });
});

describe("pitfall 88: closing with streams that stay open", () => {
  it("ends them after the grace period, and the server can close", async () => {
    const upstream = await tcpProvider((socket) => void socket.write(chunkedHead + chunked(output)));
    const gateway = createGateway({
      providers: { p: provider(upstream.origin) },
      models: { m: { targets: [{ target: "p/x" }] } },
    });
    const server = createHttpServer(createNodeHandler(gateway));
    const url = await serving(server);
    const answers = Array.from({ length: 5 }, () =>
      ask(url, { path: "/v1/chat/completions", headers: { "content-type": "application/json" }, body: chatBody }),
    );
    while (upstream.requests.length < 5) await sleep(5);
    await sleep(50);
    const startedAt = performance.now();
    const closed = once(server, "close");
    server.close();
    await gateway.close({ graceMs: 200 });
    await closed;
    expect(performance.now() - startedAt).toBeLessThan(1200);
    for (const answer of await Promise.all(answers)) {
      expect(answer).toMatchObject({ status: 200, complete: false });
      expect(answer.body.toString()).toMatch(/"code":"gateway_shutdown"/);
    }
    await upstream.closed();
  });

  it("does not wait for a client that reads nothing", async () => {
    const large = chunked(`: ${"x".repeat(20_000_000)}\n\n`);
    const upstream = await tcpProvider((socket) => void socket.write(chunkedHead + chunked(output) + large));
    const ends: unknown[] = [];
    const gateway = createGateway({
      providers: { p: provider(upstream.origin) },
      models: { m: { targets: [{ target: "p/x" }] } },
      observers: [{ onEvent: (event) => void (event.type === "request-end" && ends.push(event)) }],
    });
    const server = createHttpServer(createNodeHandler(gateway));
    const url = await serving(server);
    const headers = { "content-type": "application/json" };
    const client = await RawClient.send(url, { path: "/v1/chat/completions", headers, body: chatBody });
    await client.waitFor("hi");
    client.socket.pause();
    await sleep(100);
    const startedAt = performance.now();
    const closed = once(server, "close");
    server.close();
    await gateway.close({ graceMs: 100 });
    await closed;
    expect(performance.now() - startedAt).toBeLessThan(900);
    expect(ends).toMatchObject([{ outcome: "failure", failure: { kind: "shutdown" } }]);
    client.socket.resume();
    expect((await client.answer()).complete).toBe(false);
  });
});

describe("pitfall 90: any path", () => {
  it("ends in an answer, or is the host's", async () => {
    const upstream = await tcpProvider((socket) => void socket.write(healthyAnswer));
    const { gateway } = await world({
      providers: { p: provider(upstream.origin), g: { type: "google", baseUrl: upstream.origin, apiKey: "key" } },
    });
    const pieces = fc.constantFrom(
      "/",
      "v1",
      "v1beta",
      "models",
      "model",
      "%2f",
      "%2e%2e",
      "..",
      ":",
      "streamGenerateContent",
      "converse-stream",
      "invoke",
      "\u0000",
      "?",
      "#",
      "\\",
      "%",
      "é",
      "responses",
      "chat",
      "completions",
      "@evil.example",
    );
    fc.assert(
      fc.property(
        fc.array(pieces, { maxLength: 12 }),
        fc.constantFrom("GET", "POST", "DELETE", "PROPFIND"),
        fc.boolean(),
        (parts, method, mounted) => {
          expect(() => gateway.match(method, `/${parts.join("")}`, mounted)).not.toThrow();
          expect(() => gateway.match(method, parts.join("/"), mounted)).not.toThrow();
        },
      ),
      { numRuns: 2000 },
    );
  });
});
