/** The relay of most examples: `fetch`, and its web stream as a Node stream. */

import { createServer } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { endToEnd, requestHeaders, serve, upstreamOrigin } from "./serve.mjs";

async function relay(req, res) {
  const leave = new AbortController();
  res.on("close", () => leave.abort());
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  const options = {
    method: req.method,
    headers: requestHeaders(req),
    body: Buffer.concat(chunks),
    signal: leave.signal,
  };
  const answer = await fetch(upstreamOrigin + req.url, options);
  res.writeHead(answer.status, endToEnd(Object.fromEntries(answer.headers)));
  await pipeline(Readable.fromWeb(answer.body), res);
}

serve(createServer((req, res) => void relay(req, res).catch(() => res.destroy())));
