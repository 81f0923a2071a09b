/**
 * The gateway behind a Koa application's own auth. From the root of the repository:
 *
 *     npm run build && PORT=8080 CLIENT_TOKEN=secret ANTHROPIC_API_KEY=… OPENAI_API_KEY=… node examples/dist/koa-auth.js
 *
 * Then: `curl -N http://127.0.0.1:8080/v1/chat/completions -H "authorization: Bearer secret" -H "content-type: application/json"
 * -d '{"model":"chat","stream":true,"messages":[{"role":"user","content":"Hello"}]}'`
 */

import { gatewayMiddleware } from "@first-chunk/koa";
import Koa from "koa";
import type { ParameterizedContext } from "koa";
import { userOf } from "./client-token.js";
import type { User } from "./client-token.js";
import { portOf, readEnvironment } from "./environment.js";
import { gatewayConfig, serverVariables } from "./gateway-config.js";
import { serve } from "./serve.js";

interface State {
  user?: User | undefined;
}
type Context = ParameterizedContext<State>;

const settings = readEnvironment("node examples/dist/koa-auth.js", serverVariables);
const port = portOf(settings.PORT);

const gateway = gatewayMiddleware<Context>(gatewayConfig(settings), {
  // The application has authenticated already; here its answer is handed on. A rejection from here reaches the client in
  // its own protocol, so its SDK throws the AuthenticationError that it knows.
  identify: ({ state: { user } }) =>
    user === undefined ? { reject: 401 } : { subject: user.name, metadata: { plan: user.plan } },
});

const app = new Koa<State>();
app.use(async (ctx, next) => {
  ctx.state.user = userOf(ctx.headers, settings.CLIENT_TOKEN);
  await next();
});
app.use(gateway);
app.use((ctx) => {
  if (ctx.path === "/health") ctx.body = { ok: true };
});
// Koa 3 also reports every client that leaves in the middle of a stream.
app.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "ERR_STREAM_PREMATURE_CLOSE") console.error(error);
});

const handle = app.callback();
serve((req, res) => void handle(req, res), gateway.gateway, port);
