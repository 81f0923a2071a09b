/** What is measured of one subject in one visit. Each scenario answers with its figures; a broken stream throws. */

import { setTimeout as delay } from "node:timers/promises";
import { scriptOf } from "./streams.mjs";

const chat = "/v1/chat/completions";

/**
 * Lengths in ms.
 *
 * @typedef {object} Effort
 * @property {number} rounds
 * @property {number} firstWarmUp streams before the first round: what the rounds run is compiled by then
 * @property {number} warmUp streams before each visit: a process that was idle for minutes is cold, and V8 has dropped much
 *   of what it had compiled; it took 12,000 streams until bare dispatch cost the same again
 * @property {number} shortMs
 * @property {number} variantMs
 * @property {number} pacedMs
 * @property {number} bulkWarmUpMs what a stream runs that brings much at once is cold after the paced ones
 * @property {number} bulkMs
 * @property {number} pairs
 * @property {number} memoryRounds
 */

/**
 * @typedef {object} Bench
 * @property {Effort} effort
 * @property {{ ask(command: string, options: object): Promise<any> }} client
 * @property {{ port: number, finishIdle(): void }} provider
 */

/**
 * @typedef {object} Visited
 * @property {import("./catalog.mjs").Subject} subject
 * @property {Record<string, string>} headers
 * @property {number} port
 * @property {() => Promise<number>} cpu
 * @property {() => Promise<number>} rss
 */

/** @typedef {Record<string, number>} Figures */

const shortConnections = 64;
const bulkConnections = 8;
const pacedStreams = 250;
/** Before the window of a paced run: all streams have begun by then. */
const pacedLeadMs = 250;
const longestWarmUpMs = 15_000;

/** @param {Visited} visited */
function target({ port, headers }, model, path = chat, responseModel = model) {
  return { port, path, headers, model, responseModel };
}

/**
 * Counted in streams, since it is the number of calls that makes a program compiled: a slow subject on a busy machine
 * would still be cold after a time.
 *
 * @param {Bench} bench
 * @param {Visited} visited
 * @param {number} streams
 */
export async function warmUp({ client }, visited, streams) {
  await client.ask("loop", { target: target(visited, "short"), connections: 32, durationMs: longestWarmUpMs, streams });
}

/** @param {Bench} bench @param {Visited} visited @returns {Promise<Figures>} */
async function closedLoop({ client }, visited, loop) {
  const before = await visited.cpu();
  const startedAt = performance.now();
  const result = await client.ask("loop", loop);
  const seconds = (performance.now() - startedAt) / 1000;
  const cpu = (await visited.cpu()) - before;
  const bytes = scriptOf(loop.target.responseModel).body.length * result.streams;
  return {
    cpuUsPerStream: (cpu * 1000) / result.streams,
    cpuUsPerEvent: (cpu * 1000) / result.events,
    streamsPerSecond: result.streams / seconds,
    megabytesPerSecond: bytes / 1e6 / seconds,
    p50Ms: result.p50,
    p99Ms: result.p99,
  };
}

/** @param {Bench} bench @param {Visited} visited */
export function short(bench, visited, durationMs = bench.effort.shortMs) {
  return closedLoop(bench, visited, { target: target(visited, "short"), connections: shortConnections, durationMs });
}

/** @param {Bench} bench @param {Visited} visited @param {import("./catalog.mjs").Variant} variant */
export function variant(bench, visited, { model, path, responseModel }) {
  const loop = { connections: shortConnections, durationMs: bench.effort.variantMs };
  return closedLoop(bench, visited, { ...loop, target: target(visited, model, path, responseModel) });
}

/** @param {Bench} bench @param {Visited} visited */
async function bulk(bench, visited) {
  const loop = { target: target(visited, "bulk"), connections: bulkConnections };
  await bench.client.ask("loop", { ...loop, durationMs: bench.effort.bulkWarmUpMs });
  return closedLoop(bench, visited, { ...loop, durationMs: bench.effort.bulkMs });
}

/** CPU per event while 250 streams bring an event each 20 ms. @param {Bench} bench @param {Visited} visited @returns {Promise<Figures>} */
async function paced({ client, effort }, visited) {
  const events = Math.ceil((effort.pacedMs + 2 * pacedLeadMs) / 20);
  const model = `paced.${events}`;
  const script = scriptOf(model);
  await client.ask("open", { target: target(visited, model), streams: pacedStreams });
  await delay(pacedLeadMs / 2);
  const from = await client.ask("count", {});
  const before = await visited.cpu();
  await delay(effort.pacedMs);
  const to = await client.ask("count", {});
  const cpu = (await visited.cpu()) - before;
  await client.ask("settle", {});
  const count = ((to.received - from.received) / script.body.length) * script.events.length;
  return { cpuUsPerEvent: (cpu * 1000) / count, eventsPerSecond: (count / effort.pacedMs) * 1000 };
}

/** @param {Bench} bench @param {Visited} visited @returns {Promise<Figures>} */
async function ttft({ client, effort, provider }, visited) {
  const direct = { port: provider.port, path: chat, headers: {}, model: "short" };
  const { added } = await client.ask("firstByte", { target: target(visited, "short"), direct, pairs: effort.pairs });
  const sorted = added.toSorted((a, b) => a - b);
  const at = (part) => sorted[Math.floor((sorted.length - 1) * part)];
  return { addedP50Us: at(0.5) * 1000, addedP99Us: at(0.99) * 1000 };
}

/** @type {Record<string, (bench: Bench, visited: Visited) => Promise<Figures>>} */
export const scenarios = { short, paced, bulk, ttft };

/** Idle streams, in steps. */
const idleSteps = [2000, 5000];

/**
 * Memory per idle open stream, and what a short stream costs beside 5,000 of them. Of a fresh process.
 *
 * @param {Bench} bench
 * @param {Visited} visited
 * @returns {Promise<Figures>}
 */
export async function idle(bench, visited) {
  const { client, provider, effort } = bench;
  const to = target(visited, "idle");
  await warmUp(bench, visited, effort.warmUp);
  await delay(300);
  const base = await visited.rss();
  /** @type {Figures} */
  const figures = { baseMib: base / 1024 };
  let open = 0;
  for (const step of idleSteps) {
    await client.ask("open", { target: to, streams: step - open });
    open = step;
    await delay(500);
    figures[`kibPerStream${step}`] = ((await visited.rss()) - base) / step;
  }
  await warmUp(bench, visited, effort.warmUp);
  const beside = await short(bench, visited);
  provider.finishIdle();
  await client.ask("settle", {});
  await delay(300);
  await warmUp(bench, visited, effort.warmUp);
  const alone = await short(bench, visited);
  return { ...figures, growth: beside.cpuUsPerStream / alone.cpuUsPerStream };
}
