/** What the subjects in this folder share: where the provider is, and how they say that they are ready. */

export const upstreamPort = Number(process.env.BENCH_UPSTREAM_PORT);
export const upstreamOrigin = `http://127.0.0.1:${upstreamPort}`;

/** Owned by one connection: not relayed. https://www.rfc-editor.org/rfc/rfc9110#section-7.6.1 */
const hopByHop = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** @param {import("node:http").IncomingHttpHeaders} headers */
export function endToEnd(headers) {
  const kept = {};
  for (const name in headers) if (!hopByHop.has(name)) kept[name] = headers[name];
  return kept;
}

/** The request's headers without those that the HTTP client writes itself. */
export function requestHeaders(req) {
  const kept = endToEnd(req.headers);
  delete kept.host;
  delete kept["content-length"];
  return kept;
}

/** @param {import("node:http").Server} server */
export function serve(server) {
  server.listen(0, "127.0.0.1", 4096, () => process.send({ type: "listening", port: server.address().port }));
  process.on("message", (message) => {
    if (message.type === "cpu") {
      const { user, system } = process.cpuUsage();
      process.send({ type: "cpu", ms: (user + system) / 1000, rss: process.memoryUsage.rss() });
    }
  });
  process.on("disconnect", () => process.exit());
}
