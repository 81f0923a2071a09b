/** Three providers over real sockets, a steady stream of requests, and the first provider down for a while. */

import { once } from "node:events";
import { Agent, createServer, request } from "node:http";
import type { IncomingMessage, Server } from "node:http";
import type { AddressInfo } from "node:net";
import { performance } from "node:perf_hooks";
import { setTimeout } from "node:timers/promises";
import { createGateway, createNodeHandler } from "@first-chunk/core";
import type { Gateway, GatewayConfig, ObserverEvent } from "@first-chunk/core";
import { anthropicErrorFirst, anthropicHealthy, sse, startScriptedProvider } from "@first-chunk/core/testing";
import type { ScriptedProvider } from "@first-chunk/core/testing";

/** Times in ms, from the first request on. */
export interface DrillPlan {
  readonly requestsPerSecond: number;
  readonly durationMs: number;
  /** From here on the first provider answers `200` with an overload in its first event. */
  readonly downFromMs: number;
  readonly downUntilMs: number;
  readonly cooldown: { readonly windowMs: number; readonly durationMs: number };
}

export interface Moment {
  /** For an answer, when its request was sent. */
  readonly atMs: number;
  readonly type: "answered" | "client-failure" | "attempt-failure" | "rest" | "back";
  /** Provider; for a client's failure, what it saw. */
  readonly who: string;
}

export interface DrillResult {
  readonly plan: DrillPlan;
  readonly requests: number;
  readonly moments: readonly Moment[];
  /** Of the first provider, in ms each. */
  readonly restsMs: readonly number[];
}

const names = ["first", "second", "third"] as const;

export async function runDrill(plan: DrillPlan): Promise<DrillResult> {
  const providers = await Promise.all(names.map(() => startScriptedProvider(sse(anthropicHealthy()))));
  const recorder = new MomentRecorder();
  const gateway = createGateway(configFor(providers, plan, recorder));
  const server = createServer(createNodeHandler(gateway));
  // Longer than the drill: a connection that is closed while a request is on its way looks like a failure.
  server.keepAliveTimeout = 120_000;
  try {
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const requests = await sendAll(server, providers[0] as ScriptedProvider, plan, recorder);
    return { plan, requests, moments: recorder.moments, restsMs: recorder.restsMs };
  } finally {
    await closeAll(server, gateway, providers);
  }
}

function configFor(providers: readonly ScriptedProvider[], plan: DrillPlan, recorder: MomentRecorder): GatewayConfig {
  return {
    providers: Object.fromEntries(
      names.map((name, index) => [name, { type: "anthropic", baseUrl: providers[index]?.url ?? "", apiKey: "drill" }]),
    ),
    models: { claude: { targets: names.map((name) => ({ target: `${name}/model` })) } },
    cooldown: plan.cooldown,
    observers: [recorder],
  };
}

class MomentRecorder {
  readonly moments: Moment[] = [];
  readonly restsMs: number[] = [];
  #startedAt = performance.now();

  start(): void {
    this.#startedAt = performance.now();
  }

  now(): number {
    return performance.now() - this.#startedAt;
  }

  add(type: Moment["type"], who: string, atMs: number = this.now()): void {
    this.moments.push({ atMs, type, who });
  }

  onEvent(event: ObserverEvent): void {
    if (event.type === "attempt-reject") this.add("attempt-failure", event.provider);
    if (event.type === "cooldown-end") this.add("back", event.provider);
    if (event.type !== "cooldown-start") return;
    this.restsMs.push(event.until - event.at);
    this.add("rest", event.provider);
  }
}

async function sendAll(
  server: Server,
  first: ScriptedProvider,
  plan: DrillPlan,
  recorder: MomentRecorder,
): Promise<number> {
  const { port } = server.address() as AddressInfo;
  const agent = new Agent({ keepAlive: true });
  const total = Math.round((plan.durationMs * plan.requestsPerSecond) / 1000);
  const answers: Promise<void>[] = [];
  recorder.start();
  let down = false;
  for (let index = 0; index < total; index += 1) {
    const atMs = (index * 1000) / plan.requestsPerSecond;
    const waitMs = atMs - recorder.now();
    if (waitMs > 0) await setTimeout(waitMs);
    const shouldBeDown = atMs >= plan.downFromMs && atMs < plan.downUntilMs;
    if (shouldBeDown !== down) first.use(sse(shouldBeDown ? anthropicErrorFirst() : anthropicHealthy()));
    down = shouldBeDown;
    const sentMs = recorder.now();
    answers.push(
      ask(port, agent).then(
        (provider) => recorder.add("answered", provider, sentMs),
        (error: unknown) =>
          recorder.add("client-failure", error instanceof Error ? error.message : String(error), sentMs),
      ),
    );
  }
  await Promise.all(answers);
  agent.destroy();
  return total;
}

/** @returns the provider that answered; rejects unless the whole answer came */
async function ask(port: number, agent: Agent): Promise<string> {
  const headers = { "content-type": "application/json" };
  const call = request({ host: "127.0.0.1", port, agent, path: "/v1/messages", method: "POST", headers });
  call.end(
    JSON.stringify({ model: "claude", stream: true, max_tokens: 64, messages: [{ role: "user", content: "hi" }] }),
  );
  const [response] = (await once(call, "response")) as [IncomingMessage];
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) text += chunk as string;
  if (response.statusCode !== 200) throw new Error(`status ${response.statusCode}`);
  if (!text.includes('"message_stop"') || text.includes("overloaded_error")) throw new Error("no complete answer");
  return String(response.headers["x-tfy-resolved-model"]).split("/")[0] ?? "";
}

async function closeAll(server: Server, gateway: Gateway, providers: readonly ScriptedProvider[]): Promise<void> {
  await gateway.close();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await Promise.all(providers.map((provider) => provider.close()));
}
