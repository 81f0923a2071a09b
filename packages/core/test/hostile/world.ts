/** A gateway on `node:http` in front of providers, and a record of what it lets out. */

import { createServer } from "node:http";
import { onTestFinished } from "vitest";
import type { GatewayConfig, Logger } from "../../src/config.js";
import { createGateway, type Gateway } from "../../src/gateway.js";
import { createNodeHandler } from "../../src/http/node-handler.js";
import type { ObserverEvent } from "../../src/observability/observer.js";
import { ask, RawClient, type Answer, type RawRequest } from "../../src/testing/contract/raw-client.js";
import { serving } from "../http/serving.js";

export interface World {
  readonly url: string;
  readonly gateway: Gateway;
  readonly observed: ObserverEvent[];
  /** Everything that was logged, as JSON. */
  readonly logged: string[];
  open(request?: Partial<RawRequest>): Promise<RawClient>;
  ask(request?: Partial<RawRequest>): Promise<Answer>;
  /** The end of so many requests was recorded. */
  ended(requests: number): Promise<void>;
}

export const chatBody: string = JSON.stringify({
  model: "m",
  stream: true,
  messages: [{ role: "user", content: "hi" }],
});

/** Fails the test where a rejection stays unhandled or a listener leaks. */
export async function world(config: Partial<GatewayConfig> & Pick<GatewayConfig, "providers">): Promise<World> {
  const observed: ObserverEvent[] = [];
  const logged: string[] = [];
  const problems: unknown[] = [];
  const onProblem = (problem: unknown): void => void problems.push(problem);
  process.on("unhandledRejection", onProblem);
  process.on("uncaughtException", onProblem);
  const log = (facts: object, message: string): void => void logged.push(JSON.stringify([facts, message]));
  const logger: Logger = { debug: log, info: log, warn: log, error: log };
  let wake = (): void => undefined;
  const onEvent = (event: ObserverEvent): void => {
    observed.push(event);
    if (event.type === "request-end") wake();
  };
  const targets = Object.keys(config.providers).map((name) => ({ target: `${name}/x` }));
  const defaults = { models: { m: { targets } }, retry: { attempts: 0 }, cooldown: false } as const;
  const gateway = createGateway({ ...defaults, logger, ...config, observers: [{ onEvent }] });
  const url = await serving(createServer(createNodeHandler(gateway)));
  onTestFinished(async () => {
    await gateway.close({ graceMs: 0 });
    process.off("unhandledRejection", onProblem);
    process.off("uncaughtException", onProblem);
    if (problems.length > 0) throw new Error("something went unhandled", { cause: problems[0] });
  });
  const complete = (request: Partial<RawRequest>): RawRequest => ({
    path: "/v1/chat/completions",
    body: chatBody,
    ...request,
    headers: { "content-type": "application/json", ...request.headers },
  });
  return {
    url,
    gateway,
    observed,
    logged,
    open: (request = {}) => RawClient.send(url, complete(request)),
    ask: (request = {}) => ask(url, complete(request)),
    ended: async (requests) => {
      while (observed.filter((event) => event.type === "request-end").length < requests) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}

export function provider(origin: string, more: object = {}): GatewayConfig["providers"][string] {
  return { type: "openai", baseUrl: `${origin}/v1`, apiKey: "key-of-the-target", ...more };
}
