/** `http-proxy-middleware` 4 on Express 5, with a keep-alive agent. Not in this workspace: see peers.mjs. */

import { Agent, createServer } from "node:http";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import express from "express";
import { serve, upstreamOrigin } from "./serve.mjs";

const { resolve } = createRequire(`${process.env.BENCH_PEER}/`);
const { createProxyMiddleware } = await import(pathToFileURL(resolve("http-proxy-middleware")).href);

const app = express();
const agent = new Agent({ keepAlive: true, maxSockets: Infinity, maxFreeSockets: 1024 });
app.use(createProxyMiddleware({ target: upstreamOrigin, agent }));
serve(createServer(app));
