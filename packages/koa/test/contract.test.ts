import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { bodyParser as koaBodyParser } from "@koa/bodyparser";
import { adapterContract } from "@first-chunk/core/testing";
import type { AdapterHarness, AdapterSetup, RunningApp } from "@first-chunk/core/testing";
import { gatewayMiddleware } from "@first-chunk/koa";
import Koa from "koa";
import Koa2 from "koa2";
import compress from "koa-compress";
import mountAt from "koa-mount";
import { describe, it } from "vitest";

const frameworks = [
  { name: "Koa 2", framework: Koa2 as unknown as typeof Koa },
  { name: "Koa 3", framework: Koa },
];

/** Both majors report a connection that is closed within a request body. */
const documented = ["HPE_INVALID_EOF_STATE"];
const documentedAppError = (error: unknown): boolean =>
  error instanceof Error && "code" in error && documented.includes(String(error.code));

async function start(framework: typeof Koa, setup: AdapterSetup): Promise<RunningApp> {
  const app = new framework();
  const appErrors: unknown[] = [];
  app.on("error", (error: unknown) => appErrors.push(error));
  const gateway = useGateway(app, setup);
  app.use(async (ctx) => {
    let bytes = 0;
    if (!ctx.req.readableEnded) for await (const chunk of ctx.req) bytes += (chunk as Buffer).length;
    ctx.set("x-host", "yes");
    ctx.set("x-host-body-bytes", String(bytes));
    ctx.body = `${ctx.method} ${ctx.originalUrl}`;
  });
  const server = app.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    appErrors,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
      if (!("handle" in setup.config)) await gateway.close();
    },
  };
}

function useGateway(app: Koa, setup: AdapterSetup) {
  const { config, options = {}, earlierHeaders, earlierWait, bodyParser = "none", mount } = setup;
  if (earlierHeaders !== undefined) {
    app.use(async (ctx, next) => {
      ctx.set(earlierHeaders as Record<string, string>);
      await next();
    });
  }
  if (earlierWait !== undefined) {
    app.use(async (ctx, next) => {
      await earlierWait(once(ctx.res, "close").then(() => undefined));
      await next();
    });
  }
  if (setup.compression === true) app.use(compress());
  if (bodyParser !== "none") app.use(parser(bodyParser));
  const { identify, ...rest } = options;
  const middleware = gatewayMiddleware(config, {
    ...rest,
    identify: identify && ((ctx) => identify(ctx.req.headers)),
  });
  if (mount === undefined) app.use(middleware);
  else app.use(mountAt(mount, middleware));
  return middleware.gateway;
}

function parser(kind: "json" | "json-keeping-raw" | "raw"): Koa.Middleware {
  const parse = koaBodyParser();
  return async (ctx, next) => {
    if (kind === "raw") {
      const chunks: Buffer[] = [];
      for await (const chunk of ctx.req) chunks.push(chunk as Buffer);
      Object.assign(ctx.request, { body: Buffer.concat(chunks) });
      return next();
    }
    return parse(ctx, async () => {
      if (kind === "json") Object.assign(ctx.request, { rawBody: undefined });
      await next();
    });
  };
}

for (const { name, framework } of frameworks) {
  const harness: AdapterHarness = { name, start: (setup) => start(framework, setup), documentedAppError };
  adapterContract(harness, { describe, it });
}
