/** The same in Express 5, as most write it: `express.json()`, and the body serialised again. */

import { createServer } from "node:http";
import { pipeline } from "node:stream/promises";
import express from "express";
import { Agent, request } from "undici";
import { endToEnd, requestHeaders, serve, upstreamOrigin } from "./serve.mjs";

const dispatcher = new Agent();
const app = express();
app.use(express.json());
app.post("/v1/chat/completions", async (req, res) => {
  const leave = new AbortController();
  res.on("close", () => leave.abort());
  const body = JSON.stringify(req.body);
  const options = { dispatcher, method: "POST", headers: requestHeaders(req), body, signal: leave.signal };
  const answer = await request(upstreamOrigin + req.url, options);
  res.writeHead(answer.statusCode, endToEnd(answer.headers));
  await pipeline(answer.body, res);
});
serve(createServer(app));
