/**
 * The reference: the least that relays a stream with undici, as one would write it by hand. A buffered body, a `dispatch`
 * handler that writes each chunk as it comes, back-pressure, and an abort when the client leaves. It looks at nothing.
 */

import { createServer } from "node:http";
import { Pool } from "undici";
import { endToEnd, requestHeaders, serve, upstreamOrigin } from "./serve.mjs";

const pool = new Pool(upstreamOrigin, { connections: null, pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });

class Relay {
  constructor(res) {
    this.res = res;
    this.controller = undefined;
    this.ended = false;
    res.on("close", () => {
      if (!this.ended) this.controller?.abort(new Error("the client left"));
    });
    res.on("drain", () => this.controller?.resume());
  }

  onRequestStart(controller) {
    this.controller = controller;
    if (this.res.destroyed) controller.abort(new Error("the client left"));
  }

  onResponseStart(_controller, status, headers) {
    this.res.writeHead(status, endToEnd(headers));
  }

  onResponseData(controller, chunk) {
    if (!this.res.write(chunk)) controller.pause();
  }

  onResponseEnd() {
    this.ended = true;
    this.res.end();
  }

  onResponseError(_controller, error) {
    this.ended = true;
    if (this.res.headersSent) this.res.destroy(error);
    else this.res.writeHead(502).end();
  }
}

serve(
  createServer((req, res) => {
    const chunks = [];
    req.on("data", (chunk) => chunks.push(chunk));
    req.on("end", () => {
      const body = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks);
      pool.dispatch({ path: req.url, method: req.method, headers: requestHeaders(req), body }, new Relay(res));
    });
  }),
);
