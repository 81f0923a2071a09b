/** The usual relay: `request` with the body as a stream, and `pipeline`. */

import { createServer } from "node:http";
import { pipeline } from "node:stream/promises";
import { Agent, request } from "undici";
import { endToEnd, requestHeaders, serve, upstreamOrigin } from "./serve.mjs";

const dispatcher = new Agent();

async function relay(req, res) {
  const leave = new AbortController();
  res.on("close", () => leave.abort());
  const headers = requestHeaders(req);
  const options = { dispatcher, method: req.method, headers, body: req, signal: leave.signal };
  const answer = await request(upstreamOrigin + req.url, options);
  res.writeHead(answer.statusCode, endToEnd(answer.headers));
  await pipeline(answer.body, res);
}

serve(createServer((req, res) => void relay(req, res).catch(() => res.destroy())));
