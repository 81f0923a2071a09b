import { once } from "node:events";
import { createServer } from "node:http";
import { connect as connectHttp2, createServer as createHttp2Server } from "node:http2";
import type { AddressInfo } from "node:net";
import { finished, PassThrough, Readable } from "node:stream";
import { createGateway } from "@first-chunk/core";
import type { Gateway, GatewayConfig } from "@first-chunk/core";
import { gatewayMiddleware } from "@first-chunk/koa";
import Koa from "koa";
import Koa2 from "koa2";
import mount from "koa-mount";
import { describe, expect, expectTypeOf, it, onTestFinished } from "vitest";
import { latch } from "../../core/src/testing/contract/latch.js";
import { ask, headerOf, RawClient } from "../../core/src/testing/contract/raw-client.js";
import { anyFailure, failing, releasing, ScriptedBody, silent } from "../../core/test/http/scripted-gateway.js";
import type { ScriptedGateway } from "../../core/test/http/scripted-gateway.js";
import { serving } from "../../core/test/http/serving.js";

const config: GatewayConfig = { providers: { local: { type: "openai-compatible", baseUrl: "http://127.0.0.1:9" } } };
const messages = { path: "/v1/messages", body: "{}", headers: { "content-type": "application/json" } };

/** The middleware takes gateways by their brand. */
function branded(gateway: ScriptedGateway): Gateway {
  return Object.assign(gateway, { [Symbol.for("first-chunk.Gateway")]: true }) as unknown as Gateway;
}

describe("the types", () => {
  it("fit the middleware of both majors", () => {
    const middleware = gatewayMiddleware(config);
    expectTypeOf(middleware).toExtend<Koa.Middleware>();
    new Koa().use(middleware);
    new Koa2().use(middleware);
    expect(middleware).toHaveLength(2);
  });

  it("let identify read the state", () => {
    interface State {
      readonly user: { readonly id: string };
    }
    new Koa().use(gatewayMiddleware(config, { identify: (ctx) => ({ subject: ctx.state.user.id }) }));
    new Koa<State>().use(gatewayMiddleware(config, { identify: (ctx) => ({ subject: ctx.state.user.id }) }));
    new Koa<State>().use(gatewayMiddleware<State>(config, { identify: ({ state }) => ({ subject: state.user.id }) }));
    new Koa2().use(gatewayMiddleware(config, { identify: (ctx) => ({ subject: ctx.state.user.id }) }));
  });
});

it("shares a gateway", () => {
  const gateway = createGateway(config);
  expect(gatewayMiddleware(gateway).gateway).toBe(gateway);
});

for (const { name, framework } of [
  { name: "Koa 2", framework: Koa2 as unknown as typeof Koa },
  { name: "Koa 3", framework: Koa },
]) {
  const start = (gateway: ScriptedGateway, before: Koa.Middleware = (_, next) => next()) => {
    const app = new framework();
    const errors: (Error & { code?: string })[] = [];
    app.on("error", (error: Error) => errors.push(error));
    app.use(before);
    app.use(gatewayMiddleware(branded(gateway)));
    return { app, errors, listen: () => serving(createServer(app.callback())) };
  };

  describe(`${name}: the middleware before`, () => {
    it("may still set headers after await next()", async () => {
      const { listen } = start(releasing(new ScriptedBody().push("x").finish()), async (ctx, next) => {
        await next();
        ctx.cookies.set("session", "1");
        ctx.set("x-response-time", "1ms");
      });
      const answer = await ask(await listen(), messages);
      expect(answer.body.toString()).toBe("x");
      expect(headerOf(answer, "x-response-time")).toBe("1ms");
      expect(headerOf(answer, "set-cookie")).toMatch(/session=1/);
    });

    it("may answer in place of the gateway: the body is cancelled", async () => {
      const body = new ScriptedBody().push("ours");
      const { listen } = start(releasing(body), async (ctx, next) => {
        await next();
        ctx.body = "theirs";
      });
      expect((await ask(await listen(), messages)).body.toString()).toBe("theirs");
      await body.left;
    });

    it("may destroy the body: it is cancelled while the response is still open", async () => {
      const body = new ScriptedBody().push("ours");
      const { listen } = start(releasing(body), async (ctx, next) => {
        await next();
        (ctx.body as Readable).destroy();
        await body.left;
        ctx.body = "theirs";
      });
      expect((await ask(await listen(), messages)).body.toString()).toBe("theirs");
    });

    it("may throw after the release: the body is cancelled, and the client gets the error", async () => {
      const body = new ScriptedBody().push("ours");
      const { listen, errors } = start(releasing(body), async (ctx, next) => {
        await next();
        ctx.throw(418, "theirs");
      });
      expect((await ask(await listen(), messages)).status).toBe(418);
      await body.left;
      expect(errors.filter(({ code }) => code !== undefined)).toEqual([]);
    });

    it("that does not await next() is reported, and the process lives on", async () => {
      const gateway = silent();
      const reported = latch();
      const { app, errors, listen } = start(gateway, async (_ctx, next) => void next());
      app.on("error", reported.open);
      expect((await ask(await listen(), messages)).status).toBe(404);
      await reported.opened;
      expect(errors.map(({ code }) => code)).toEqual(["ERR_FIRST_CHUNK_RESPONSE_TAKEN"]);
    });

    it("gets what identify throws", async () => {
      const app = new framework().use(async (ctx, next) =>
        next().catch((error: unknown) => (ctx.body = String(error))),
      );
      const identify = (): never => {
        throw new Error("mine");
      };
      app.use(gatewayMiddleware(branded(silent()), { identify }));
      expect((await ask(await serving(createServer(app.callback())), messages)).body.toString()).toBe("Error: mine");
    });

    it("sees 499 for a client that left", async () => {
      const gateway = silent();
      const status = new Promise<number>((resolve) => {
        const { listen } = start(gateway, async (ctx, next) => {
          setImmediate(() => ctx.req.socket.destroy());
          await next();
          resolve(ctx.status);
        });
        void listen().then((url) => RawClient.send(url, messages));
      });
      expect(await status).toBe(499);
    });
  });

  describe(`${name}: a broken stream`, () => {
    it("is sent to its last byte and never ended, however much waits in between", async () => {
      const size = 5_000_000;
      const body = new ScriptedBody();
      const client = await RawClient.send(await start(releasing(body)).listen(), messages);
      client.socket.pause();
      await body.piped;
      for (let part = 0; part < 50; part += 1) body.push(Buffer.alloc(size / 50));
      body.push("error").fail();
      client.socket.resume();
      const answer = await client.answer();
      expect(answer.complete).toBe(false);
      expect(answer.body).toHaveLength(size + "error".length);
      expect(body.cancelled).toBeUndefined();
    });

    it("that breaks before the first byte is no empty answer", async () => {
      const answer = await ask(await start(releasing(new ScriptedBody().fail())).listen(), messages);
      expect(answer.complete).toBe(false);
    });
  });

  describe(`${name}: the body as a stream`, () => {
    const wrapping =
      (wrap: (body: Readable) => Readable): Koa.Middleware =>
      async (ctx, next) => {
        await next();
        if (ctx.body instanceof Readable) ctx.body = wrap(ctx.body);
      };

    it("can be piped on by an earlier middleware, to its last byte", async () => {
      const body = new ScriptedBody();
      const { errors, listen } = start(
        releasing(body),
        wrapping((stream) => stream.pipe(new PassThrough())),
      );
      const client = await RawClient.send(await listen(), messages);
      await body.piped;
      body.push("one ");
      await client.waitFor("one ");
      body.push("two").finish();
      const answer = await client.answer();
      expect(answer).toMatchObject({ complete: true });
      expect(answer.body.toString()).toBe("one two");
      expect(errors).toEqual([]);
    });

    it("that is piped on stops the body while the client does not read", async () => {
      const body = new ScriptedBody();
      const { listen } = start(
        releasing(body),
        wrapping((stream) => stream.pipe(new PassThrough())),
      );
      const client = await RawClient.send(await listen(), messages);
      client.socket.pause();
      await body.piped;
      let parts = 0;
      for (; !body.full && parts < 1000; parts += 1) {
        body.push(Buffer.alloc(65_536));
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(parts).toBeLessThan(1000);
      client.socket.resume();
      await body.taken();
      body.finish();
      expect((await client.answer()).body).toHaveLength(parts * 65_536);
    });

    it("that is piped on and breaks is never a complete answer", async () => {
      const body = new ScriptedBody();
      const { listen } = start(
        releasing(body),
        wrapping((stream) => stream.pipe(new PassThrough())),
      );
      const client = await RawClient.send(await listen(), messages);
      await body.piped;
      body.push("half");
      await client.waitFor("half");
      body.fail();
      expect((await client.answer()).complete).toBe(false);
    });

    it("can be iterated by an earlier middleware", async () => {
      const upper = async function* (stream: Readable) {
        for await (const chunk of stream) yield String(chunk).toUpperCase();
      };
      const body = new ScriptedBody().push("one ").push("two").finish();
      const { listen } = start(
        releasing(body),
        wrapping((stream) => Readable.from(upper(stream))),
      );
      expect((await ask(await listen(), messages)).body.toString()).toBe("ONE TWO");
    });

    it("tells a listener of an earlier middleware every chunk", async () => {
      const seen: string[] = [];
      const { listen } = start(
        releasing(new ScriptedBody().push("one ").push("two").finish()),
        wrapping((stream) => stream.on("data", (chunk: Buffer) => seen.push(chunk.toString()))),
      );
      expect((await ask(await listen(), messages)).body.toString()).toBe("one two");
      expect(seen.join("")).toBe("one two");
    });

    it("has ended for those who ask when the answer is over", async () => {
      const asked: unknown[] = [];
      const over = latch();
      const { listen } = start(
        releasing(new ScriptedBody().push("x").finish()),
        wrapping((stream) => {
          stream.once("close", () =>
            finished(stream, (error) => {
              asked.push(error ?? "finished");
              over.open();
            }),
          );
          return stream;
        }),
      );
      await ask(await listen(), messages);
      await over.opened;
      expect(asked).toEqual(["finished"]);
    });

    it("ends and closes for those who wait for that", async () => {
      const told: string[] = [];
      const over = latch();
      const { listen } = start(
        releasing(new ScriptedBody().push("x").finish()),
        wrapping((stream) => {
          for (const event of ["end", "close"]) stream.on(event, () => told.push(event));
          finished(stream, (error) => {
            told.push(error === undefined || error === null ? "finished" : String(error));
            over.open();
          });
          return stream;
        }),
      );
      expect((await ask(await listen(), messages)).body.toString()).toBe("x");
      await over.opened;
      expect(told.toSorted()).toEqual(["close", "end", "finished"]);
    });
  });

  describe(`${name}: an answer`, () => {
    it("whose last bytes come with its end goes out in one packet", async () => {
      const url = await start(releasing(new ScriptedBody().push("all").finish())).listen();
      const client = await RawClient.send(url, messages);
      const [packet] = (await once(client.socket, "data")) as [Buffer];
      expect(packet.toString()).toMatch(/\r\n\r\n(3\r\nall\r\n0\r\n\r\n|all)$/);
    });

    it("is one packet for the chunks of one tick", async () => {
      const body = new ScriptedBody().push("one ");
      const client = await RawClient.send(await start(releasing(body)).listen(), messages);
      await once(client.socket, "data");
      body.push("two ").push("three");
      const [packet] = (await once(client.socket, "data")) as [Buffer];
      expect(packet.toString()).toBe("4\r\ntwo \r\n5\r\nthree\r\n");
    });

    it("stops the body while the client does not read", async () => {
      const body = new ScriptedBody();
      const client = await RawClient.send(await start(releasing(body)).listen(), messages);
      client.socket.pause();
      await body.piped;
      let parts = 0;
      for (; !body.full && parts < 1000; parts += 1) {
        body.push(Buffer.alloc(65_536));
        await new Promise((resolve) => setImmediate(resolve));
      }
      expect(parts).toBeLessThan(1000);
      body.push("the rest");
      client.socket.resume();
      await body.taken();
      body.finish();
      expect((await client.answer()).body).toHaveLength(parts * 65_536 + "the rest".length);
    });

    it("is a 413 that the client can read while it still sends", async () => {
      const url = await start(silent()).listen();
      const client = await RawClient.send(url, {
        ...messages,
        body: undefined,
        headers: { "transfer-encoding": "chunked" },
      });
      for (let sent = 0; sent < 200; sent += 1) client.socket.write(`4000\r\n${"x".repeat(0x4000)}\r\n`);
      client.socket.write("0\r\n\r\n");
      const answer = await client.answer();
      expect(answer).toMatchObject({ status: 413, complete: true });
      expect(headerOf(answer, "connection")).toBe("close");
    });

    it("that cannot be sent cancels the body", async () => {
      const body = new ScriptedBody();
      const answer = await ask(await start(releasing(body, { "x-bad": "a\nb" })).listen(), messages);
      expect(answer.status).toBe(500);
      expect(body.cancelled).toBe("client-abort");
    });
  });

  describe(`${name}: a mount path`, () => {
    it("of koa-mount makes the short paths match", async () => {
      const gateway = failing(anyFailure);
      const app = new framework().use(mount("/llm", gatewayMiddleware(branded(gateway))));
      const url = await serving(createServer(app.callback()));
      expect((await ask(url, { ...messages, path: "/llm/messages" })).status).toBe(502);
      expect((await ask(url, { ...messages, path: "/messages" })).status).toBe(404);
    });

    it("of another middleware does not", async () => {
      const app = new framework().use(mount("/messages", (_, next) => next()));
      app.use(gatewayMiddleware(branded(failing(anyFailure))));
      expect((await ask(await serving(createServer(app.callback())), { ...messages, path: "/messages" })).status).toBe(
        404,
      );
    });
  });

  it(`${name}: over HTTP/2, a client that cancels aborts the request`, async () => {
    const body = new ScriptedBody().push("x");
    const { app } = start(releasing(body));
    const server = createHttp2Server(app.callback());
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const session = connectHttp2(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    onTestFinished(() => {
      session.destroy();
      server.close();
    });
    const stream = session.request({ ":method": "POST", ":path": "/v1/messages", "content-type": "application/json" });
    stream.end("{}");
    await once(stream, "data");
    stream.close();
    await body.left;
    expect(body.cancelled).toBe("client-abort");
  });
}
