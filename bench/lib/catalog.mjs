/** Every subject: what it is, how it is started, and what of it is measured. */

import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findCommand, findNode, findPeer, freePort } from "./peers.mjs";

const chat = "/v1/chat/completions";
const every = ["short", "paced", "bulk", "ttft"];

/**
 * @typedef {object} Variant a short stream of another kind, on the same subject
 * @property {string} id
 * @property {string} label
 * @property {string} model
 * @property {string} [responseModel]
 * @property {string} path
 */

/**
 * @typedef {object} Subject
 * @property {string} id
 * @property {string} label
 * @property {number} [node] major version of Node; absent: not a Node program
 * @property {readonly string[]} scenarios
 * @property {readonly Variant[]} [variants]
 * @property {boolean} [memory] measured with idle streams too
 * @property {boolean} [ours]
 * @property {readonly string[]} [script] file in subjects/, and its arguments
 * @property {"http-proxy-middleware" | "@portkey-ai/gateway"} [peer]
 * @property {"nginx" | "haproxy" | "portkey" | "direct"} [kind] absent: a script
 */

/** @type {readonly Variant[]} */
const variants = [
  { id: "held", label: "role-only event held first", model: "held", path: chat },
  {
    id: "anthropic",
    label: "Anthropic: message_start, block start and ping held",
    model: "anthropic",
    path: "/v1/messages",
  },
  { id: "renamed", label: "model replaced in the request", model: "renamed-short", responseModel: "short", path: chat },
];

const observers = {
  observer: "an observer that counts",
  log: "the log, written to nowhere",
  prometheus: "the Prometheus observer",
  opentelemetry: "the OpenTelemetry observer, spans dropped",
};

/** @param {number} node @returns {readonly Subject[]} */
function onNode(node) {
  const script = (file, ...args) => [file, ...args];
  const all = [
    {
      id: "dispatch",
      label: "bare undici dispatch",
      scenarios: every,
      script: script("undici-dispatch"),
      memory: true,
    },
    { id: "pipeline", label: "undici request + pipeline", scenarios: every, script: script("undici-pipeline") },
    { id: "express", label: "Express 5 + pipeline", scenarios: every, script: script("express-pipeline") },
    {
      id: "hpm",
      label: "http-proxy-middleware 4 on Express 5",
      scenarios: every,
      script: script("http-proxy-middleware"),
      peer: "http-proxy-middleware",
    },
    {
      id: "fetch",
      label: "fetch + Readable.fromWeb",
      scenarios: every,
      script: script("fetch-from-web"),
    },
    {
      id: "ours",
      label: "First Chunk on node:http",
      scenarios: every,
      script: script("ours", "http"),
      variants,
      ours: true,
      memory: true,
    },
    {
      id: "ours-koa",
      label: "First Chunk on Koa 3",
      scenarios: every,
      script: script("ours", "koa"),
      ours: true,
    },
    {
      id: "ours-express",
      label: "First Chunk on Express 5",
      scenarios: every,
      script: script("ours", "express"),
      ours: true,
    },
    ...["observer", "log", "prometheus", "opentelemetry"].map((kind) => ({
      id: `ours-${kind}`,
      label: `First Chunk on node:http, with ${observers[kind]}`,
      scenarios: ["short"],
      script: script("ours", "http", kind),
      ours: true,
    })),
    {
      id: "ours-fallback",
      label: "First Chunk on node:http, a fallback in each request",
      scenarios: ["short"],
      script: script("ours", "http", "fallback"),
      ours: true,
    },
  ];
  return all.map((subject) => ({
    ...subject,
    id: `${subject.id}@${node}`,
    label: `${subject.label}, Node ${node}`,
    node,
  }));
}

/** @type {readonly Subject[]} */
export const subjects = [
  { id: "direct", label: "direct", scenarios: ["short", "paced", "bulk"], kind: "direct" },
  { id: "nginx", label: "nginx", scenarios: every, kind: "nginx" },
  { id: "haproxy", label: "HAProxy", scenarios: every, kind: "haproxy" },
  ...onNode(20),
  ...onNode(24),
  {
    id: "portkey@20",
    label: "Portkey, Node 20",
    node: 20,
    scenarios: every,
    kind: "portkey",
    peer: "@portkey-ai/gateway",
  },
];

/**
 * @typedef {object} Ready
 * @property {import("./children.mjs").Launch & { port?: number, name: string }} launch
 * @property {Record<string, string>} headers that its requests carry besides those of all
 * @property {string} version
 */

/**
 * What has to be there for a subject is found or fetched.
 *
 * @param {Subject} subject
 * @param {number} upstreamPort
 * @param {number | undefined} core
 * @returns {Promise<Ready | string>} or why it cannot take part
 */
export async function prepare(subject, upstreamPort, core) {
  const { id: name, kind } = subject;
  if (kind === "nginx" || kind === "haproxy") return prepareProxy(kind, upstreamPort, core);
  const command = findNode(subject.node ?? 0);
  if (command === undefined) return `Node ${subject.node} is neither running this nor to be had with npx`;
  const peer = subject.peer === undefined ? undefined : findPeer(subject.peer);
  if (subject.peer !== undefined && peer === undefined) return `${subject.peer} cannot be installed with npm`;
  const env = { BENCH_UPSTREAM_PORT: String(upstreamPort), NODE_ENV: "production" };
  if (kind === "portkey") {
    const port = await freePort();
    const args = [
      join(peer?.folder ?? "", "node_modules/@portkey-ai/gateway/build/start-server.js"),
      "--headless",
      `--port=${port}`,
    ];
    const headers = { "x-portkey-provider": "openai", "x-portkey-custom-host": `http://127.0.0.1:${upstreamPort}/v1` };
    return { launch: { name, command, args, core, env, port, ipc: false }, headers, version: peer?.version ?? "" };
  }
  const [file = "", ...rest] = subject.script ?? [];
  const path = fileURLToPath(new URL(`../subjects/${file}.mjs`, import.meta.url));
  const launchEnv = peer === undefined ? env : { ...env, BENCH_PEER: peer.folder };
  return {
    launch: { name, command, args: [path, ...rest], core, env: launchEnv },
    headers: {},
    version: peer?.version ?? "",
  };
}

/** @param {"nginx" | "haproxy"} kind @param {number} upstreamPort @param {number | undefined} core @returns {Promise<Ready | string>} */
async function prepareProxy(kind, upstreamPort, core) {
  const version = findCommand(kind);
  if (version === undefined) return `${kind} is not installed`;
  const port = await freePort();
  const folder = mkdtempSync(join(tmpdir(), "first-chunk-bench-"));
  const file = join(folder, `${kind}.conf`);
  writeFileSync(file, kind === "nginx" ? nginxConfig(folder, port, upstreamPort) : haproxyConfig(port, upstreamPort));
  const args =
    kind === "nginx" ? ["-p", folder, "-c", file, "-e", join(folder, "error.log")] : ["-q", "-db", "-f", file];
  return { launch: { name: kind, command: kind, args, core, port, ipc: false, cwd: folder }, headers: {}, version };
}

const nginxConfig = (folder, port, upstreamPort) => `daemon off; worker_processes 1; pid ${folder}/nginx.pid;
events { worker_connections 20000; }
http {
  access_log off; keepalive_requests 1000000; proxy_temp_path ${folder}/proxy; client_body_temp_path ${folder}/body;
  fastcgi_temp_path ${folder}/fastcgi; uwsgi_temp_path ${folder}/uwsgi; scgi_temp_path ${folder}/scgi;
  upstream provider { server 127.0.0.1:${upstreamPort}; keepalive 512; keepalive_requests 1000000; }
  server {
    listen 127.0.0.1:${port} backlog=4096;
    location / { proxy_pass http://provider; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; proxy_read_timeout 300s; }
  }
}
`;

const haproxyConfig = (port, upstreamPort) => `global
  maxconn 8000
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 300s
  timeout server 300s
  option http-no-delay
frontend in
  bind 127.0.0.1:${port}
  default_backend provider
backend provider
  http-reuse always
  server s 127.0.0.1:${upstreamPort}
`;
