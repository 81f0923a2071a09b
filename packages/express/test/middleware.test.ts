import { createServer } from "node:http";
import type { IncomingMessage } from "node:http";
import { createGateway, isConfigError } from "@first-chunk/core";
import type { GatewayConfig } from "@first-chunk/core";
import { chatHealthy, sse, startScriptedProvider } from "@first-chunk/core/testing";
import { gatewayMiddleware } from "@first-chunk/express";
import express from "express";
import express4 from "express4";
import { describe, expect, expectTypeOf, it, onTestFinished } from "vitest";
import { ask } from "../../core/src/testing/contract/raw-client.js";
import { serving } from "../../core/test/http/serving.js";

const config = (baseUrl = "http://127.0.0.1:9"): GatewayConfig => ({
  providers: { local: { type: "openai-compatible", baseUrl } },
});
const chat = {
  path: "/v1/chat/completions",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ model: "local/m", messages: [], stream: true }),
};

async function provider() {
  const started = await startScriptedProvider(sse(chatHealthy()));
  onTestFinished(() => started.close());
  return started;
}

describe("the factory", () => {
  it("throws a wrong config at once, with its path", () => {
    const wrong = { providers: { local: { type: "openai-compatible" } } } as GatewayConfig;
    expect(() => gatewayMiddleware(wrong)).toThrow(/providers\.local\.baseUrl/);
  });

  it("throws a wrong option at once", () => {
    let error: unknown;
    try {
      gatewayMiddleware(config(), { prefix: "llm" });
    } catch (thrown) {
      error = thrown;
    }
    expect(isConfigError(error) && error.path).toBe("options.prefix");
  });

  it("shares a gateway, and makes one of a config", () => {
    const gateway = createGateway(config());
    expect(gatewayMiddleware(gateway).gateway).toBe(gateway);
    expect(gatewayMiddleware(config()).gateway).not.toBe(gateway);
  });
});

describe("the types", () => {
  it("fit the request handlers of both majors", () => {
    const middleware = gatewayMiddleware(config());
    expectTypeOf(middleware).toExtend<express.RequestHandler>();
    expectTypeOf(middleware).toExtend<express4.RequestHandler>();
    expectTypeOf(middleware).returns.toEqualTypeOf<void>();
  });

  it("let identify read what the host's types say of a request", () => {
    const middleware = gatewayMiddleware(config(), {
      identify: (req: IncomingMessage & { user?: { id: string } }) => req.user && { subject: req.user.id },
    });
    express().use(middleware);
    express4().use(middleware);
    express().use(gatewayMiddleware(config(), { identify: (req: express.Request) => ({ subject: req.ip ?? "" }) }));
    expect(middleware).toHaveLength(3);
  });
});

for (const { name, framework } of [
  { name: "Express 4", framework: express4 as unknown as typeof express },
  { name: "Express 5", framework: express },
]) {
  describe(`${name}: mounted`, () => {
    it.each([
      ["/llm", "/llm/v1/chat/completions", true],
      ["/llm", "/llm/chat/completions?x=1", true],
      ["/llm/", "/llm/chat/completions", true],
      ["/:tenant", "/acme/chat/completions", true],
      ["/v1", "/v1/chat/completions", true],
      ["/llm", "/v1/chat/completions", false],
      ["/", "/chat/completions", false],
      ["/", "/v1/chat/completions", true],
    ])("at %s, %s is the gateway's: %s", async (mount, path, ours) => {
      const { url } = await provider();
      const app = framework();
      app.use(mount, gatewayMiddleware(config(url)));
      expect((await ask(await serving(createServer(app)), { ...chat, path })).status).toBe(ours ? 200 : 404);
    });

    it("in a router, and as the handler of a route", async () => {
      const { url } = await provider();
      const app = framework();
      const router = framework.Router();
      router.use(gatewayMiddleware(config(url)));
      app.use("/llm", router);
      app.post("/v1/chat/completions", gatewayMiddleware(config(url)));
      const host = await serving(createServer(app));
      expect((await ask(host, { ...chat, path: "/llm/chat/completions" })).status).toBe(200);
      expect((await ask(host, chat)).status).toBe(200);
    });
  });

  describe(`${name}: errors`, () => {
    const failing = async (use: (app: express.Express) => void, body: string = chat.body) => {
      const errors: unknown[] = [];
      const app = framework();
      use(app);
      app.use((error: { status?: number }, _req: unknown, res: express.Response, _next: unknown) => {
        errors.push(error);
        res.status(error.status ?? 500).send("host");
      });
      const answer = await ask(await serving(createServer(app)), { ...chat, body });
      return { answer: answer.body.toString(), status: answer.status, errors };
    };

    it.each(["sync", "async"])("that identify throws go to the host, once (%s)", async (kind) => {
      const mine = new Error("mine");
      const identify =
        kind === "sync"
          ? () => {
              throw mine;
            }
          : () => Promise.reject(mine);
      const result = await failing((app) => app.use(gatewayMiddleware(config(), { identify })));
      expect(result).toEqual({ answer: "host", status: 500, errors: [mine] });
    });

    it("of a body parser go to the host, and no provider is called", async () => {
      const { url, requests } = await provider();
      const result = await failing((app) => app.use(framework.json(), gatewayMiddleware(config(url))), "{");
      expect(result).toMatchObject({ answer: "host", status: 400 });
      expect(requests).toHaveLength(0);
    });

    it("of the gateway are its own answer", async () => {
      const result = await failing((app) => app.use(gatewayMiddleware(config())));
      expect(result).toMatchObject({ status: 502, errors: [] });
      expect(JSON.parse(result.answer)).toHaveProperty("error.message");
    });
  });
}
