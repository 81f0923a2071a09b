/**
 * Soak: streams with random faults on both sides, and what must hold all the while: each request ends in exactly one
 * right outcome, the provider sees every abort, and afterwards heap and handles are what they were.
 *
 *     npm run soak                       # 5 minutes, 500 streams at once
 *     npm run soak -- --seconds=20
 *     npm run soak -- --seed=7 --streams=100
 *
 * The gateway, its providers and its clients share one process, so that everything can be counted. The same seed gives
 * the same faults; their order in time depends on the machine.
 */

import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { createGateway, createNodeHandler } from "../packages/core/dist/index.js";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc");

const options = Object.fromEntries(process.argv.slice(2).map((argument) => argument.replace(/^--/, "").split("=")));
const seconds = Number(options.seconds ?? 300);
const streams = Number(options.streams ?? 500);
const seed = Number(options.seed ?? 1);

/** mulberry32 */
function randomFrom(state) {
  let a = state >>> 0;
  return () => {
    a = (a + 0x6d2b79f5) >>> 0;
    let t = Math.imul(a ^ (a >>> 15), 1 | a);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

const preamble = 'data: {"choices":[{"delta":{"role":"assistant"}}]}\n\n';
const text = (index) => `data: {"choices":[{"delta":{"content":"word ${index} "}}]}\n\n`;
const done = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
const failure = 'data: {"error":{"message":"Overloaded","type":"server_error","code":"server_error"}}\n\n';

/** What a provider does, and what the client must then get: `ok`, `status` (an error answer), `broken`, `inband`. */
const providerFaults = {
  healthy: { weight: 50, outcome: "ok" },
  slow: { weight: 8, outcome: "ok" },
  large: { weight: 4, outcome: "ok" },
  "error first": { weight: 6, outcome: "status" },
  "http 500": { weight: 5, outcome: "status" },
  "http 429": { weight: 3, outcome: "status" },
  "reset at once": { weight: 4, outcome: "status" },
  "empty stream": { weight: 3, outcome: "status" },
  html: { weight: 2, outcome: "status" },
  "silent before output": { weight: 2, outcome: "status" },
  "reset after output": { weight: 5, outcome: "broken" },
  "end after output": { weight: 4, outcome: "broken" },
  "silent after output": { weight: 2, outcome: "broken" },
  "error after output": { weight: 2, outcome: "inband" },
};
/** What a client does. `leave …` must be seen by the provider where its answer is not over by then. */
const clientFaults = {
  reads: 70,
  "leaves at once": 5,
  "leaves after a moment": 8,
  "leaves at the first text": 8,
  "reads slowly": 6,
  "half closes": 3,
};

function pick(weights, random) {
  const entries = Object.entries(weights).map(([name, value]) => [
    name,
    typeof value === "number" ? value : value.weight,
  ]);
  let at = random() * entries.reduce((sum, [, weight]) => sum + weight, 0);
  for (const [name, weight] of entries) if ((at -= weight) < 0) return name;
  return entries[0][0];
}

const counts = { requests: 0, outcomes: {}, abortsSeen: 0, wrong: [] };
/** Requests that the provider is answering. */
let openCalls = 0;
const wrong = (plan, why) => counts.wrong.push(`${JSON.stringify(plan)}: ${why}`);

/** By id of the request: what was planned, and what the provider saw. The latest ones: a provider may get one late. */
const plans = new Map();
const keptPlans = 4 * streams;

const provider = createServer(async (req, res) => {
  const parts = [];
  try {
    for await (const part of req) parts.push(part);
  } catch {
    return;
  }
  const plan = plans.get(JSON.parse(Buffer.concat(parts).toString()).user);
  if (plan === undefined) throw new Error("a request that nobody sent");
  plan.calls += 1;
  plan.openCalls += 1;
  openCalls += 1;
  let ended = false;
  res.on("error", () => {});
  res.on("close", () => {
    plan.openCalls -= 1;
    openCalls -= 1;
    if (!ended && !res.writableFinished) plan.abortsSeen += 1;
  });
  const end = (how) => {
    ended = true;
    how();
  };
  const stream = () => res.writeHead(200, { "content-type": "text/event-stream" }).write(preamble);
  switch (plan.provider) {
    case "http 500":
      return end(() => res.writeHead(500).end('{"error":{"message":"Broke."}}'));
    case "http 429":
      return end(() =>
        res.writeHead(429, { "retry-after": "60" }).end('{"error":{"message":"Slow down.","type":"rate_limit_error"}}'),
      );
    case "reset at once":
      return end(() => req.socket.resetAndDestroy());
    case "html":
      return end(() => res.writeHead(200, { "content-type": "text/html" }).end("<html>Bad gateway</html>"));
    case "empty stream":
      return end(() => res.writeHead(200, { "content-type": "text/event-stream" }).end());
    case "silent before output":
      return void stream();
    case "error first":
      stream();
      return end(() => res.end(failure));
  }
  stream();
  const words = plan.provider === "large" ? 2000 : plan.words;
  for (let index = 0; index < words && !res.destroyed; index += 1) {
    if (!res.write(text(index))) await Promise.race([once(res, "drain"), once(res, "close")]).catch(() => {});
    if (plan.provider === "slow" || (index % 4 === 0 && plan.provider !== "large"))
      await sleep(plan.provider === "slow" ? 25 : 5);
  }
  if (res.destroyed) return;
  switch (plan.provider) {
    case "reset after output":
      return end(() => req.socket.resetAndDestroy());
    case "end after output":
      return end(() => res.end());
    case "silent after output":
      return;
    case "error after output":
      return end(() => res.end(failure));
    default:
      return end(() => res.end(done));
  }
});

let ended = 0;
let endedTwice = 0;
let lastEnded = new Set();

function onEvent(event) {
  if (event.type !== "request-end") return;
  counts.outcomes[event.outcome] = (counts.outcomes[event.outcome] ?? 0) + 1;
  ended += 1;
  // A second end comes soon after the first, if it comes.
  if (lastEnded.has(event.requestId)) endedTwice += 1;
  if (lastEnded.size > 10_000) lastEnded = new Set();
  lastEnded.add(event.requestId);
}

provider.keepAliveTimeout = 60_000;
provider.listen(0, "127.0.0.1");
await once(provider, "listening");
const gateway = createGateway({
  providers: { p: { type: "openai", baseUrl: `http://127.0.0.1:${provider.address().port}/v1`, apiKey: "key" } },
  models: { m: { targets: [{ target: "p/m" }] } },
  retry: { attempts: 0 },
  cooldown: false,
  timeouts: { idleTimeoutMs: 1500, writeStallTimeoutMs: 5000 },
  observers: [{ onEvent }],
});

const front = createServer(createNodeHandler(gateway));
front.listen(0, "127.0.0.1");
await once(front, "listening");
const { port } = front.address();

/** What came over a connection: the status, whether it came whole, and the text. */
function parse(bytes) {
  const all = bytes.toString("latin1");
  const status = Number(/^HTTP\/1\.1 (\d+)/.exec(all)?.[1] ?? 0);
  const chunked = all.includes("transfer-encoding: chunked") || all.includes("Transfer-Encoding: chunked");
  return {
    status,
    whole: chunked ? all.endsWith("\r\n0\r\n\r\n") : status !== 0,
    all,
    answers: all.match(/HTTP\/1\.1 /g)?.length ?? 0,
  };
}

async function request(plan) {
  const body = JSON.stringify({ model: "m", stream: true, user: plan.id, messages: [] });
  const socket = connect(port, "127.0.0.1");
  const received = [];
  let left = false;
  const leave = () => {
    left = true;
    if (plan.reset) socket.resetAndDestroy();
    else socket.destroy();
  };
  socket.on("error", () => {});
  socket.on("data", (data) => {
    received.push(data);
    if (plan.client === "leaves at the first text" && data.includes("word")) leave();
    if (plan.client === "reads slowly") {
      socket.pause();
      setTimeout(() => socket.resume(), 10);
    }
  });
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
  socket.write(head + body);
  if (plan.client === "half closes") socket.end();
  if (plan.client === "leaves at once") setImmediate(leave);
  if (plan.client === "leaves after a moment") setTimeout(leave, plan.moment);
  await once(socket, "close");
  // The provider hears of it within 100 ms; the machine may be busy.
  for (let waited = 0; plan.openCalls > 0 && waited < 5000; waited += 10) await sleep(10);
  if (plan.openCalls > 0) return wrong(plan, "the provider's connection is still open");
  // A connection that is reset before a byte of the answer may have been stale: the request is sent once more.
  if (plan.calls > (plan.provider === "reset at once" ? 2 : 1)) return wrong(plan, `${plan.calls} calls`);
  if (left || plan.client === "half closes") return void (counts.abortsSeen += plan.abortsSeen);
  const { status, whole, all, answers } = parse(Buffer.concat(received));
  const { outcome } = providerFaults[plan.provider];
  if (answers !== 1) return wrong(plan, `${answers} answers`);
  if (outcome === "status")
    return status >= 400 && whole && !all.includes("data:") ? undefined : wrong(plan, `status ${status}`);
  if (status !== 200) return wrong(plan, `status ${status}: ${all.slice(-300)}`);
  if (outcome === "broken") return whole ? wrong(plan, "a broken stream that looks whole") : undefined;
  if (!whole) return wrong(plan, "a whole stream that is cut short");
  if (outcome === "ok" && !all.includes("[DONE]")) return wrong(plan, "no end");
}

async function client(number, until) {
  const random = randomFrom(seed * 100_003 + number);
  while (performance.now() < until) {
    const id = `${number}-${counts.requests}`;
    const plan = {
      id,
      provider: pick(providerFaults, random),
      client: pick(clientFaults, random),
      words: 1 + Math.floor(random() * 40),
      moment: Math.floor(random() * 80),
      reset: random() < 0.5,
      calls: 0,
      openCalls: 0,
      abortsSeen: 0,
    };
    counts.requests += 1;
    plans.set(id, plan);
    await request(plan);
    for (const oldest of plans.keys()) {
      if (plans.size <= keptPlans) break;
      plans.delete(oldest);
    }
  }
}

const unhandled = [];
process.on("unhandledRejection", (reason) => unhandled.push(reason));
process.on("uncaughtException", (error) => unhandled.push(error));
process.on("warning", (warning) => unhandled.push(warning));

async function heapAndHandles() {
  for (let round = 0; round < 5; round += 1) {
    await sleep(50);
    collectGarbage();
  }
  const { heapUsed, external, arrayBuffers } = process.memoryUsage();
  return {
    heap: heapUsed + external + arrayBuffers,
    handles: process.getActiveResourcesInfo().filter((name) => name !== "Timeout" && name !== "Immediate").length,
  };
}

async function load(forMs) {
  const until = performance.now() + forMs;
  await Promise.all(Array.from({ length: streams }, (_, number) => client(number, until)));
}

console.log(`soak: ${streams} streams at once for ${seconds} s, seed ${seed}, Node ${process.version}`);
// Code is compiled and pools are filled before the first measurement.
await load(Math.min(3000, (seconds * 1000) / 4));
const before = await heapAndHandles();
const startedAt = performance.now();
await load(seconds * 1000);
const took = (performance.now() - startedAt) / 1000;
// Idle connections to the provider are kept for 10 s: a few more or fewer than before say nothing.
const after = await heapAndHandles();

await gateway.close({ graceMs: 1000 });
front.close();
front.closeAllConnections();
provider.close();
provider.closeAllConnections();
await sleep(100);
const left = process.getActiveResourcesInfo().filter((name) => /TCP|Timeout/.test(name));

const grown = (after.heap - before.heap) / 1_048_576;
const checks = {
  [`${counts.requests} requests, each with exactly one right outcome`]: counts.wrong.length === 0,
  [`${ended} recorded as ended, none twice`]: endedTwice === 0 && ended <= counts.requests,
  [`heap: ${(before.heap / 1_048_576).toFixed(1)} MiB before, ${(after.heap / 1_048_576).toFixed(1)} MiB after`]:
    grown < 16,
  [`handles: ${before.handles} before, ${after.handles} after, ${left.length} after close()`]:
    after.handles <= before.handles + 50 && left.length === 0,
  "every abort seen by the provider": openCalls === 0,
  "nothing unhandled": unhandled.length === 0,
};
console.log(
  `${(counts.requests / took).toFixed(0)} requests/s; recorded: ${JSON.stringify(counts.outcomes)}; aborts seen by the provider: ${counts.abortsSeen}`,
);
for (const [what, ok] of Object.entries(checks)) console.log(`${ok ? "ok  " : "FAIL"} ${what}`);
for (const one of counts.wrong.slice(0, 10)) console.log("    ", one);
for (const one of unhandled.slice(0, 5)) console.log("    ", one);
process.exitCode = Object.values(checks).every(Boolean) ? 0 : 1;
