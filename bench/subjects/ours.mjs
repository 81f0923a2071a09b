/**
 * First Chunk: `ours.mjs <http | koa | express> [observer | log | prometheus | opentelemetry] [fallback]`. The gate and the watch after release are on, as
 * they are by default; a virtual model names the target, and with it the model in the request is replaced.
 */

import { createServer } from "node:http";
import { createGateway, createNodeHandler } from "@first-chunk/core";
import { serve, upstreamOrigin } from "./serve.mjs";

const [mount, ...options] = process.argv.slice(2);

const seen = {};
const counting = {
  onEvent(event) {
    seen[event.type] = (seen[event.type] ?? 0) + 1;
  },
};

/** Makes a line of what it is given, as loggers do, and drops it. */
function line(facts, message) {
  seen[message] = JSON.stringify({ time: Date.now(), ...facts, msg: message }).length;
}
const logger = { debug: line, info: line, warn: line, error: line };

/** What of the configuration the observer needs. */
async function observing() {
  if (options.includes("observer")) return { observers: [counting] };
  if (options.includes("log")) return { logger };
  if (options.includes("prometheus")) {
    const { prometheusObserver } = await import("@first-chunk/core/prometheus");
    return { observers: [prometheusObserver()] };
  }
  if (options.includes("opentelemetry")) {
    const [{ openTelemetryObserver }, { BasicTracerProvider, NoopSpanProcessor }] = await Promise.all([
      import("@first-chunk/core/opentelemetry"),
      import("@opentelemetry/sdk-trace-base"),
    ]);
    const provider = new BasicTracerProvider({ spanProcessors: [new NoopSpanProcessor()] });
    return { observers: [openTelemetryObserver({ tracer: provider.getTracer("bench") })] };
  }
  return {};
}

const target = { type: "openai-compatible", apiKey: "sk-upstream-00000000000000000000000000000000" };
const failing = options.includes("fallback");
const gateway = createGateway({
  providers: {
    first: { ...target, baseUrl: `${upstreamOrigin}/failing/v1` },
    second: { ...target, baseUrl: `${upstreamOrigin}/v1` },
    anthropic: { type: "anthropic-compatible", apiKey: "sk-ant-upstream", baseUrl: upstreamOrigin },
  },
  models: {
    anthropic: { routing: "priority", targets: [{ target: "anthropic/anthropic" }] },
    // Another name at the target, as is usual: the model in the request is replaced.
    "renamed-short": { routing: "priority", targets: [{ target: "second/short" }] },
    "*": {
      routing: "priority",
      targets: failing ? [{ target: "first/*" }, { target: "second/*" }] : [{ target: "second/*" }],
    },
  },
  // A target that always fails would rest, and no request would fall back.
  ...(failing ? { cooldown: false } : {}),
  ...(await observing()),
});

/** @returns {Promise<import("node:http").RequestListener>} */
async function listener() {
  if (mount === "koa") {
    const [{ default: Koa }, { gatewayMiddleware }] = await Promise.all([import("koa"), import("@first-chunk/koa")]);
    return new Koa().use(gatewayMiddleware(gateway)).callback();
  }
  if (mount === "express") {
    const [{ default: express }, { gatewayMiddleware }] = await Promise.all([
      import("express"),
      import("@first-chunk/express"),
    ]);
    return express().use(gatewayMiddleware(gateway));
  }
  return createNodeHandler(gateway);
}

serve(createServer(await listener()));
