/** One test's world: two providers, the application between them and the client, and what must not happen meanwhile. */

import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import type { GatewayConfig, ProviderType } from "../../config.js";
import type { ObserverEvent } from "../../observability/observer.js";
import { json } from "../script.js";
import { startScriptedProvider } from "../scripted-provider.js";
import type { ScriptedProvider, ScriptSource } from "../scripted-provider.js";
import type { ClientProtocol } from "./client-protocols.js";
import type { AdapterHarness, AdapterSetup, RunningApp } from "./harness.js";
import { ask, RawClient } from "./raw-client.js";
import type { Answer, RawRequest } from "./raw-client.js";

export interface ScenarioOptions {
  readonly protocol: ClientProtocol;
  /** Script of the provider that is asked first. */
  readonly first: ScriptSource;
  /** Script of the fallback. Absent: there is no second target. */
  readonly second?: ScriptSource;
  /** Default: the protocol's vendor. */
  readonly providerType?: ProviderType;
  /** Merged over the contract's own configuration. */
  readonly config?: Partial<GatewayConfig>;
  readonly app?: Omit<AdapterSetup, "config">;
}

/** A request without a path goes to the protocol's API; without a body it asks for a stream. */
export type ScenarioRequest = Partial<RawRequest>;

/** The functions may be taken out of the object: they are bound to it. */
export class Scenario {
  readonly protocol: ClientProtocol;
  readonly first: ScriptedProvider;
  readonly second: ScriptedProvider;
  readonly app: RunningApp;
  readonly events: ObserverEvent[];
  readonly #waiting: (() => void)[];

  constructor(parts: {
    protocol: ClientProtocol;
    first: ScriptedProvider;
    second: ScriptedProvider;
    app: RunningApp;
    events: ObserverEvent[];
    waiting: (() => void)[];
  }) {
    this.protocol = parts.protocol;
    this.first = parts.first;
    this.second = parts.second;
    this.app = parts.app;
    this.events = parts.events;
    this.#waiting = parts.waiting;
  }

  /** Opens a connection, sends the request, and leaves the rest to the test. */
  readonly open = (request: ScenarioRequest = {}): Promise<RawClient> =>
    RawClient.send(this.app.url, this.#complete(request));

  /** Sends the request and waits for the end of the answer. */
  readonly ask = (request: ScenarioRequest = {}): Promise<Answer> => ask(this.app.url, this.#complete(request));

  /** The first event of this type that observers were told, as soon as it has come. */
  readonly event = async <Type extends ObserverEvent["type"]>(
    type: Type,
  ): Promise<Extract<ObserverEvent, { type: Type }>> => {
    for (;;) {
      const found = this.events.find((event) => event.type === type);
      if (found !== undefined) return found as Extract<ObserverEvent, { type: Type }>;
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
      });
    }
  };

  #complete(request: ScenarioRequest): RawRequest {
    const bodyless = request.method !== undefined && request.method !== "POST";
    return {
      path: this.protocol.path,
      ...(bodyless ? {} : { body: JSON.stringify(this.protocol.body()) }),
      ...request,
      headers: bodyless ? { ...request.headers } : { "content-type": "application/json", ...request.headers },
    };
  }
}

/**
 * Runs a test in its world and takes the world down. Fails when a promise rejection stays unhandled, when a warning of a
 * listener leak is emitted, or when the framework is handed an error which it does not document.
 */
export async function inScenario(
  harness: AdapterHarness,
  options: ScenarioOptions,
  run: (scenario: Scenario) => Promise<void>,
): Promise<void> {
  const problems: unknown[] = [];
  const onProblem = (problem: unknown): void => void problems.push(problem);
  const onWarning = (warning: Error): void => {
    if (warning.name === "MaxListenersExceededWarning") problems.push(warning);
  };
  process.on("unhandledRejection", onProblem);
  process.on("warning", onWarning);
  try {
    const scenario = await build(harness, options);
    try {
      await run(scenario);
    } finally {
      await scenario.app.close();
      await Promise.all([scenario.first.close(), scenario.second.close()]);
      await setImmediate();
    }
    const expected = harness.documentedAppError ?? (() => false);
    const unexpected = scenario.app.appErrors.filter((error) => !expected(error));
    assert.deepEqual([...problems, ...unexpected], [], "nothing reaches the process or the framework's error handling");
  } finally {
    process.off("unhandledRejection", onProblem);
    process.off("warning", onWarning);
  }
}

async function build(harness: AdapterHarness, options: ScenarioOptions): Promise<Scenario> {
  const { protocol } = options;
  const first = await startScriptedProvider(options.first);
  const second = await startScriptedProvider(options.second ?? json(500, { error: { message: "not a target" } }));
  const events: ObserverEvent[] = [];
  const waiting: (() => void)[] = [];
  const onEvent = (event: ObserverEvent): void => {
    events.push(event);
    for (const wake of waiting.splice(0)) wake();
  };
  const provider = (server: ScriptedProvider): GatewayConfig["providers"][string] => ({
    type: options.providerType ?? protocol.providerType,
    baseUrl: server.url + protocol.baseUrlPath,
    apiKey: "key-of-the-target",
  });
  const targets = [
    { target: "first/model-a" },
    ...(options.second === undefined ? [] : [{ target: "second/model-b" }]),
  ];
  const config: GatewayConfig = {
    providers: { first: provider(first), second: provider(second) },
    models: { fast: { routing: "priority", targets } },
    retry: { attempts: 0 },
    observers: [{ onEvent }],
    ...options.config,
  };
  const app = await harness.start({ ...options.app, config });
  return new Scenario({ protocol, first, second, app, events, waiting });
}
