/**
 * The gateway with metrics for Prometheus and a log. From the root of the repository:
 *
 *     npm run build && PORT=8080 CLIENT_TOKEN=secret ANTHROPIC_API_KEY=… OPENAI_API_KEY=… node examples/dist/monitored.js
 *
 * Then: `curl http://127.0.0.1:8080/metrics`. A dashboard and alert rules for them are in `examples/monitoring`.
 */

import type { Logger } from "@first-chunk/core";
import { prometheusObserver } from "@first-chunk/core/prometheus";
import { gatewayMiddleware, metricsHandler } from "@first-chunk/express";
import express from "express";
import type { Request } from "express";
import { userOf } from "./client-token.js";
import { portOf, readEnvironment } from "./environment.js";
import { gatewayConfig, serverVariables } from "./gateway-config.js";
import { serve } from "./serve.js";

const settings = readEnvironment("node examples/dist/monitored.js", serverVariables);
const port = portOf(settings.PORT);

const metrics = prometheusObserver({ metadataLabels: ["plan"] });

// Any pino-shaped logger will do, pino itself among them. This one writes a JSON line to stderr.
const at = (level: string) => (facts: object, message: string) =>
  console.error(JSON.stringify({ level, message, ...facts }));
const logger: Logger = { debug: () => undefined, info: at("info"), warn: at("warn"), error: at("error") };

const gateway = gatewayMiddleware<Request>(
  { ...gatewayConfig(settings), observers: [metrics], logger },
  {
    identify: ({ headers }) => {
      const user = userOf(headers, settings.CLIENT_TOKEN);
      return user === undefined ? { reject: 401 } : { subject: user.name, metadata: { plan: user.plan } };
    },
  },
);

const app = express();
app.disable("x-powered-by");
app.use(gateway);
// It tells what your models are called: not for the public.
app.get("/metrics", metricsHandler(metrics));

serve(app, gateway.gateway, port);
