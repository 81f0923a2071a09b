/** A gateway on virtual time over a scripted upstream, and requests to it. */

import { expect } from "vitest";
import type { GatewayConfig, VirtualModelConfig } from "../../src/config.js";
import type { AttemptRejectEvent, BodyEnd, FailedEvent, GatewayEvent, ReleasedEvent } from "../../src/events.js";
import { createGateway, type Gateway } from "../../src/gateway.js";
import type { ObserverEvent, RequestEndEvent } from "../../src/observability/observer.js";
import type { GatewayRequest } from "../../src/request.js";
import { ManualClock } from "../../src/testing/manual-clock.js";
import { ScriptedUpstream, unreachable, type Script } from "../scripted-upstream.js";

type Scripts = Script | readonly Script[];

export interface Setup {
  /** What the targets do. Each is a provider of its name; all are targets of the model `m`, in this order. */
  readonly targets: Readonly<Record<string, Scripts>>;
  readonly type?: "openai" | "openai-compatible" | "anthropic";
  readonly config?: Omit<Partial<GatewayConfig>, "models" | "providers">;
  /** Merged into the provider of each name, in place of its key. */
  readonly providers?: Readonly<Record<string, object>>;
  readonly model?: Partial<Omit<VirtualModelConfig, "targets">>;
  /** Merged into the target of each name. */
  readonly targetConfig?: Readonly<Record<string, object>>;
  readonly random?: () => number;
  readonly env?: Readonly<Record<string, string>>;
}

export interface Stage {
  readonly clock: ManualClock;
  readonly upstream: ScriptedUpstream;
  readonly gateway: Gateway;
  readonly observed: ObserverEvent[];
}

const defaultRandom = (): number => 0.5;

export function stage(setup: Setup): Stage {
  const clock = new ManualClock();
  const names = Object.keys(setup.targets);
  const scripts = Object.fromEntries(names.map((name) => [`http://${name}.test`, setup.targets[name] ?? unreachable]));
  const upstream = new ScriptedUpstream(clock, scripts);
  const observed: ObserverEvent[] = [];
  const type = setup.type ?? "openai";
  const baseUrl = (name: string): string => `http://${name}.test${type === "anthropic" ? "" : "/v1"}`;
  const providers = names.map((name) => [
    name,
    { type, baseUrl: baseUrl(name), ...(setup.providers?.[name] ?? { apiKey: `key-of-${name}` }) },
  ]);
  const targets = names.map((name) => ({ target: `${name}/x`, ...setup.targetConfig?.[name] }));
  const config = {
    ...setup.config,
    observers: [...(setup.config?.observers ?? []), { onEvent: (event: ObserverEvent) => void observed.push(event) }],
    providers: Object.fromEntries(providers) as GatewayConfig["providers"],
    models: { m: { routing: "priority", ...setup.model, targets } },
  } as GatewayConfig;
  const gateway = createGateway(config, {
    clock,
    client: upstream,
    random: setup.random ?? defaultRandom,
    env: setup.env ?? {},
  });
  return { clock, upstream, gateway, observed };
}

const paths = {
  chat: "/v1/chat/completions",
  responses: "/v1/responses",
  messages: "/v1/messages",
} as const;

export interface RequestOptions {
  readonly api?: keyof typeof paths;
  readonly headers?: GatewayRequest["headers"];
  readonly body?: Record<string, unknown>;
  readonly signal?: AbortSignal;
}

/** A streaming request for the model `m`. */
export function request({ api = "chat", headers = {}, body = {}, signal }: RequestOptions = {}): GatewayRequest {
  return {
    method: "POST",
    url: paths[api],
    headers: { "content-type": "application/json", ...headers },
    body: new TextEncoder().encode(JSON.stringify({ model: "m", stream: true, ...body })),
    signal: signal ?? new AbortController().signal,
  };
}

/** One request under way: what it yielded so far, and the body as it comes. */
export class Run {
  readonly events: GatewayEvent[] = [];
  readonly done: Promise<void>;
  over = false;
  text = "";
  end: BodyEnd | undefined;
  ends = 0;
  readonly #read: boolean;

  constructor(gateway: Gateway, gatewayRequest: GatewayRequest, read: boolean) {
    this.#read = read;
    this.done = this.#collect(gateway.handle(gatewayRequest)).finally(() => (this.over = true));
    // Whoever awaits `done` gets it.
    this.done.catch(() => undefined);
  }

  get released(): ReleasedEvent | undefined {
    return this.events.find((event) => event.type === "released");
  }

  get failed(): FailedEvent | undefined {
    return this.events.find((event) => event.type === "failed");
  }

  get rejects(): readonly AttemptRejectEvent[] {
    return this.events.filter((event) => event.type === "attempt-reject");
  }

  get attempts(): readonly string[] {
    return this.events.filter((event) => event.type === "attempt-start").map((event) => event.target);
  }

  async #collect(events: AsyncIterable<GatewayEvent>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const event of events) {
      this.events.push(event);
      if (event.type !== "released" || !this.#read) continue;
      event.body.pipeTo({
        write: (chunk) => {
          this.text += decoder.decode(chunk, { stream: true });
          return true;
        },
        end: (bodyEnd) => {
          this.end = bodyEnd;
          this.ends += 1;
        },
      });
    }
  }
}

/** Sends a request and reads the body, if one is released. */
export function send({ gateway }: Stage, options: RequestOptions = {}): Run {
  return new Run(gateway, request(options), true);
}

/** Sends a request and leaves a released body alone. */
export function sendUnread({ gateway }: Stage, options: RequestOptions = {}): Run {
  return new Run(gateway, request(options), false);
}

export function requestEnds({ observed }: Stage): readonly RequestEndEvent[] {
  return observed.filter((event) => event.type === "request-end");
}

/** The types of what was observed, in order. */
export function story({ observed }: Stage): readonly string[] {
  return observed.map((event) => event.type);
}

/** Nothing is left of a request: no timer, no call under way, and it was recorded as ended once, and last. */
export function expectOver({ clock, upstream, observed }: Stage, requests = 1): void {
  expect(clock.pending).toBe(0);
  for (const call of upstream.calls) expect(call.over || call.aborted).toBe(true);
  expect(observed.filter((event) => event.type === "request-end")).toHaveLength(requests);
  expect(observed.at(-1)?.type).toBe("request-end");
}
