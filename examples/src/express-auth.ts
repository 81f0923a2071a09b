/**
 * The gateway behind an Express application's own auth. From the root of the repository:
 *
 *     npm run build && PORT=8080 CLIENT_TOKEN=secret ANTHROPIC_API_KEY=… OPENAI_API_KEY=… node examples/dist/express-auth.js
 *
 * Then: `curl -N http://127.0.0.1:8080/v1/chat/completions -H "authorization: Bearer secret" -H "content-type: application/json"
 * -d '{"model":"chat","stream":true,"messages":[{"role":"user","content":"Hello"}]}'`
 */

import { gatewayMiddleware } from "@first-chunk/express";
import express from "express";
import type { NextFunction, Request, Response } from "express";
import { userOf } from "./client-token.js";
import type { User } from "./client-token.js";
import { portOf, readEnvironment } from "./environment.js";
import { gatewayConfig, serverVariables } from "./gateway-config.js";
import { serve } from "./serve.js";

interface AuthenticatedRequest extends Request {
  user?: User | undefined;
}

const settings = readEnvironment("node examples/dist/express-auth.js", serverVariables);
const port = portOf(settings.PORT);

const gateway = gatewayMiddleware<AuthenticatedRequest, Response>(gatewayConfig(settings), {
  // The application has authenticated already; here its answer is handed on. A rejection from here reaches the client in
  // its own protocol, so its SDK throws the AuthenticationError that it knows.
  identify: ({ user }) =>
    user === undefined ? { reject: 401 } : { subject: user.name, metadata: { plan: user.plan } },
});

const app = express();
app.disable("x-powered-by");
app.use((req: AuthenticatedRequest, _res: Response, next: NextFunction) => {
  req.user = userOf(req.headers, settings.CLIENT_TOKEN);
  next();
});
app.use(gateway);
app.get("/health", (_req, res) => {
  res.json({ ok: true });
});

serve(app, gateway.gateway, port);
