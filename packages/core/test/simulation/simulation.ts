/**
 * Many requests on virtual time, without bytes: routing, health and the plan as the gateway wires them, over targets that
 * answer as a test says.
 */

import { resolveConfig } from "../../src/config/resolve.js";
import type { GatewayConfig } from "../../src/config.js";
import type { Failure } from "../../src/errors.js";
import { Plan, type PlanOutput } from "../../src/fallback/plan.js";
import type { CooldownChange } from "../../src/health/cooldown.js";
import { Health } from "../../src/health/health.js";
import { MemoryHealthStore } from "../../src/health/store.js";
import { Router, type Resolution, type RoutingFacts } from "../../src/routing/router.js";
import { seededRandom } from "./seeded-random.js";
import { plainFacts } from "../routing/targets.js";

/** One answer of a target, in ms. */
export type Answer =
  | { readonly type: "ok"; readonly ttftMs: number; readonly tokens: number; readonly tokenMs: number }
  | { readonly type: "fail"; readonly failure: Failure; readonly afterMs: number };

export type Behaviour = (now: number, random: () => number) => Answer;

export const ok = (ttftMs = 400, tokenMs = 20, tokens = 100): Answer => ({ type: "ok", ttftMs, tokens, tokenMs });

export const fail = (status: number, afterMs = 5, retryAfterMs?: number): Answer => ({
  type: "fail",
  afterMs,
  failure: { kind: "http", status, code: `code_${status}`, message: "no", retryable: true, retryAfterMs },
});

export interface Sent {
  readonly at: number;
  readonly target: string;
  readonly session: string | undefined;
}

export interface Finished {
  readonly at: number;
  /** Where it was answered; undefined: it failed. */
  readonly target: string | undefined;
  readonly attempts: number;
}

interface Event {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

export class Simulation {
  now = 0;
  readonly sent: Sent[] = [];
  readonly finished: Finished[] = [];
  readonly changes: { readonly at: number; readonly target: string; readonly change: CooldownChange }[] = [];
  readonly health: Health;
  readonly #router: Router;
  readonly #random: () => number;
  readonly #behaviours: Readonly<Record<string, Behaviour>>;
  readonly #queue: Event[] = [];
  #order = 0;

  constructor(config: Omit<GatewayConfig, "providers">, behaviours: Readonly<Record<string, Behaviour>>, seed: number) {
    const names = new Set(Object.keys(behaviours).map((target) => target.split("/")[0]));
    const provider = {
      type: "openai-compatible",
      baseUrl: "http://127.0.0.1:1/v1",
      protocols: ["openai-chat", "openai-responses"],
    } as const;
    const providers = Object.fromEntries([...names].map((name) => [name, provider]));
    const resolved = resolveConfig({ ...config, providers }, {});
    this.#random = seededRandom(seed);
    this.#behaviours = behaviours;
    const store = new MemoryHealthStore();
    const clock = { now: () => this.now, setTimer: () => ({ cancel: () => undefined }) };
    this.health = new Health({ cooldown: resolved.cooldown, store, clock, epochOffset: 0, measures: true });
    this.#router = new Router({ config: resolved, health: this.health, store, random: this.#random });
  }

  /** Does something at a time. */
  at(at: number, run: () => void): void {
    const event = { at, order: this.#order++, run };
    let index = this.#queue.push(event) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!isBefore(event, this.#queue[parent])) break;
      [this.#queue[index], this.#queue[parent]] = [this.#queue[parent], event];
      index = parent;
    }
  }

  /** Sends `count` requests, one every `everyMs`, from `from` on. */
  steady(count: number, everyMs: number, facts: (index: number) => Partial<RoutingFacts> = () => ({}), from = 0): this {
    for (let index = 0; index < count; index += 1) this.at(from + index * everyMs, () => this.request(facts(index)));
    return this;
  }

  run(): this {
    for (let next = this.#take(); next !== undefined; next = this.#take()) {
      this.now = Math.max(this.now, next.at);
      next.run();
    }
    return this;
  }

  /** A request for the model `m`, now. */
  request(facts: Partial<RoutingFacts> = {}): void {
    const resolution = this.#router.resolve({ ...plainFacts, ...facts });
    if (!("targets" in resolution)) throw new Error(resolution.message);
    const plan = new Plan(
      resolution.targets.map(({ target }) => target),
      Infinity,
      this.#random,
    );
    const session = facts.metadata?.get("session");
    this.#follow(
      plan,
      plan.step({ type: "start", now: this.now, backAt: this.#backAt(resolution) }),
      resolution,
      session,
      0,
    );
  }

  /** How often each target was asked, as a share of all attempts in `[from, to)`. */
  shares(from = 0, to = Infinity): Record<string, number> {
    const within = this.sent.filter(({ at }) => at >= from && at < to);
    const shares: Record<string, number> = {};
    for (const { target } of within) shares[target] = (shares[target] ?? 0) + 1 / within.length;
    return shares;
  }

  #follow(plan: Plan, step: PlanOutput, resolution: Resolution, session: string | undefined, attempts: number): void {
    if (step.type === "give-up") return void this.finished.push({ at: this.now, target: undefined, attempts });
    if (step.type === "wait") {
      return this.at(step.until, () =>
        this.#follow(plan, plan.step({ type: "waited", now: this.now }), resolution, session, attempts),
      );
    }
    const target = resolution.targets[step.target];
    const health = this.health.begin(target.id);
    this.sent.push({ at: this.now, target: target.id, session });
    const note = (change: CooldownChange | undefined): void => {
      if (change !== undefined) this.changes.push({ at: this.now, target: target.id, change });
    };
    const answer = this.#behaviours[target.id](this.now, this.#random);
    if (answer.type === "fail") {
      return this.at(this.now + answer.afterMs, () => {
        note(health.failed(answer.failure));
        const input = {
          type: "rejected",
          failure: answer.failure,
          now: this.now,
          backAt: this.#backAt(resolution),
        } as const;
        this.#follow(plan, plan.step(input), resolution, session, attempts + 1);
      });
    }
    const { ttftMs, tokens, tokenMs } = answer;
    this.at(this.now + ttftMs, () => {
      note(health.released());
      this.#router.answered(resolution, target, {});
      this.finished.push({ at: this.now, target: target.id, attempts: attempts + 1 });
    });
    const outputMs = tokens * tokenMs;
    this.at(this.now + ttftMs + outputMs, () => health.measured({ ttftMs, outputMs, outputTokens: tokens }));
  }

  #backAt({ targets }: Resolution): readonly number[] {
    return this.health.backAt(targets.map(({ id }) => id));
  }

  #take(): Event | undefined {
    const [first] = this.#queue;
    const last = this.#queue.pop();
    if (first === undefined || last === undefined || this.#queue.length === 0) return first;
    let index = 0;
    for (let child = 1; child < this.#queue.length; child = 2 * index + 1) {
      if (child + 1 < this.#queue.length && isBefore(this.#queue[child + 1], this.#queue[child])) child += 1;
      if (!isBefore(this.#queue[child], last)) break;
      this.#queue[index] = this.#queue[child];
      index = child;
    }
    this.#queue[index] = last;
    return first;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/** A figure for the output of the run. */
export function figure(text: string): void {
  console.info(`  figure: ${text}`);
}

export function percent(share: number | undefined): string {
  return `${(100 * (share ?? 0)).toFixed(2)} %`;
}
