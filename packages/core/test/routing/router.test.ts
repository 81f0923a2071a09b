import { describe, expect, it } from "vitest";
import type { GatewayConfig } from "../../src/config.js";
import type { Failure } from "../../src/errors.js";
import { MemoryHealthStore } from "../../src/health/store.js";
import { Router, type Resolution, type RoutingFacts } from "../../src/routing/router.js";
import { ids, plainFacts, resolved } from "./targets.js";

const means = { samples: 0, ttftMs: undefined, timePerOutputTokenMs: undefined };

interface Scene {
  readonly router: Router;
  readonly store: MemoryHealthStore;
  readonly resting: Set<string>;
  readonly time: { now: number };
}

function scene(config: Partial<GatewayConfig>, random: () => number = () => 0): Scene {
  const store = new MemoryHealthStore();
  const resting = new Set<string>();
  const time = { now: 1_000 };
  const health = {
    now: () => time.now,
    backAt: (targets: readonly string[]) => targets.map((target) => (resting.has(target) ? 9_000 : 0)),
    begun: () => 10,
    latency: () => means,
    recentLatency: () => means,
  };
  return { router: new Router({ config: resolved(config), health, store, random }), store, resting, time };
}

function resolve({ router }: Scene, facts: Partial<RoutingFacts> = {}): Resolution & Failure {
  return router.resolve({ ...plainFacts, ...facts }) as Resolution & Failure;
}

const ab = [{ target: "a/x" }, { target: "b/y" }];

describe("a requested model", () => {
  it("goes to the virtual model of its name, else to the longest pattern", () => {
    const models = {
      "gpt-*": { targets: [{ target: "a/*" }] },
      "gpt-5*": { targets: [{ target: "b/*" }] },
      "gpt-5": { targets: [{ target: "c/z" }] },
    };
    const world = scene({ models });
    expect(["gpt-4o", "gpt-5-mini", "gpt-5"].map((requested) => ids(resolve(world, { requested }).targets)[0])).toEqual(
      ["a/gpt-4o", "b/gpt-5-mini", "c/z"],
    );
  });

  it("that is unknown is a 404", () => {
    expect(resolve(scene({ models: { m: { targets: ab } } }), { requested: "other" })).toMatchObject({
      status: 404,
      code: "model_not_found",
    });
  });

  it("may be provider/model where `directModels` allows it", () => {
    const world = scene({ models: { m: { targets: ab } }, directModels: ["a/gpt-*"] });
    expect(ids(resolve(world, { requested: "a/gpt-4o" }).targets)).toEqual(["a/gpt-4o"]);
    expect(resolve(world, { requested: "a/other" }).status).toBe(404);
    expect(resolve(world, { requested: "b/gpt-4o" }).status).toBe(404);
  });

  it("of which no target serves the API is a 400 that says so", () => {
    const failure = resolve(scene({ models: { m: { targets: ab } } }), {
      protocol: "anthropic-messages",
      api: "POST /v1/messages",
    });
    expect(failure).toMatchObject({ status: 400, code: "api_not_served" });
    expect(failure.message).toContain("POST /v1/messages");
  });
});

describe("a target that cannot serve the request", () => {
  it("is skipped, with the reason", () => {
    const targets = [{ target: "claude/opus" }, { target: "a/x", metadataMatch: { tier: "gold" } }, { target: "b/y" }];
    const world = scene({ models: { m: { targets } } });
    const resolution = resolve(world);
    expect(ids(resolution.targets)).toEqual(["b/y"]);
    expect(resolution.skipped).toEqual([
      { id: "claude/opus", reason: "api" },
      { id: "a/x", reason: "metadata" },
    ]);
    expect(ids(resolve(world, { metadata: new Map([["tier", "gold"]]) }).targets)).toEqual(["a/x", "b/y"]);
  });

  it("leaves a 400 where no other is left", () => {
    const targets = [{ target: "a/x", metadataMatch: { tier: "gold" } }];
    expect(resolve(scene({ models: { m: { targets } } }))).toMatchObject({ status: 400, code: "no_target" });
  });
});

describe("rules", () => {
  const rules = [
    { id: "both", when: { subjects: ["ada"], metadata: { tier: "gold" } }, targets: [{ target: "a/both" }] },
    { id: "gpt", when: { models: ["gpt-*"] }, targets: [{ target: "b/*" }] },
    { id: "ada", when: { subjects: ["ada"] }, targets: [{ target: "c/ada" }] },
  ];
  const world = scene({ rules, models: { m: { targets: ab } } });

  it.each([
    ["all conditions of a rule must hold", { subject: "ada", metadata: new Map([["tier", "gold"]]) }, "a/both", "both"],
    ["the first that matches wins", { subject: "ada", requested: "gpt-4o" }, "b/gpt-4o", "gpt"],
    ["a rule wins over the virtual model", { subject: "ada" }, "c/ada", "ada"],
    ["without a rule the virtual model decides", { subject: "bob" }, "a/x", undefined],
    ["nobody is no subject", {}, "a/x", undefined],
  ] as const)("%s", (_name, facts, target, rule) => {
    const resolution = resolve(world, facts);
    expect([ids(resolution.targets)[0], resolution.rule]).toEqual([target, rule]);
  });

  it("records the name of the virtual model, or none", () => {
    expect(resolve(world, { subject: "ada" }).name).toBe("m");
    expect(resolve(world, { requested: "gpt-4o" }).name).toBe("unknown");
  });
});

describe("sticky sessions", () => {
  const targets = [
    { target: "a/x", weight: 50 },
    { target: "b/y", weight: 50 },
  ];
  const draws = [0, 0.9, 0.9, 0.9, 0.9, 0.9];

  function sticky(key: string, source: "headers" | "metadata" | "body"): Scene {
    const sessionIdentifiers = [
      { source: "headers", key: "X-Absent" },
      { source, key },
    ] as const;
    const values = [...draws];
    return scene(
      { models: { m: { routing: "weight", targets, sticky: { ttlSeconds: 10, sessionIdentifiers } } } },
      () => values.shift() ?? 0.9,
    );
  }

  it.each([
    ["a header", "headers", "X-Session", { headers: { "x-session": "s" } }],
    ["metadata", "metadata", "user", { metadata: new Map([["user", "s"]]) }],
    ["a member of the body", "body", "prompt_cache_key", { body: { prompt_cache_key: "s" } }],
    ["a path in the body", "body", "metadata.user_id", { body: { metadata: { user_id: "s" } } }],
    ["a number in the body", "body", "seed", { body: { seed: 7 } }],
  ] as const)("are known by %s", (_name, source, key, facts) => {
    const world = sticky(key, source);
    expect([1, 2].map(() => ids(resolve(world, facts).targets)[0])).toEqual(["a/x", "a/x"]);
    expect(ids(resolve(world).targets)[0]).toBe("b/y");
  });

  it("are kept apart by their value", () => {
    const world = sticky("user", "metadata");
    expect(
      ["s", "t", "s"].map((user) => ids(resolve(world, { metadata: new Map([["user", user]]) }).targets)[0]),
    ).toEqual(["a/x", "b/y", "a/x"]);
  });

  it("go where they were answered when their target failed", () => {
    const world = sticky("user", "metadata");
    const facts = { metadata: new Map([["user", "s"]]) };
    const resolution = resolve(world, facts);
    world.router.answered(resolution, resolution.targets[1], {});
    expect(ids(resolve(world, facts).targets)).toEqual(["b/y", "a/x"]);
  });

  it("are placed anew after their time, which each use renews", () => {
    const world = sticky("user", "metadata");
    const facts = { metadata: new Map([["user", "s"]]) };
    const places = [0, 9_999, 19_998, 29_998].map((at) => {
      world.time.now = 1_000 + at;
      return ids(resolve(world, facts).targets)[0];
    });
    expect(places).toEqual(["a/x", "a/x", "a/x", "b/y"]);
  });

  it("with empty and strange values are none", () => {
    const world = sticky("metadata.user_id", "body");
    for (const body of [
      {},
      { metadata: null },
      { metadata: { user_id: "" } },
      { metadata: { user_id: {} } },
      { metadata: "user_id" },
    ]) {
      expect(resolve(world, { body }).session).toBeUndefined();
    }
  });
});

describe("a Responses call that refers to something stored", () => {
  const targets = [{ target: "a/x" }, { target: "b/y" }, { target: "b/z" }];
  const responses = { protocol: "openai-responses", api: "POST /v1/responses" } as const;
  const encrypted = { type: "reasoning", summary: [], encrypted_content: "gAAAA" };
  const stored = { type: "response.completed", response: { id: "resp_1", output: [{ type: "message" }, encrypted] } };

  function issued(): Scene {
    const world = scene({ models: { m: { targets }, other: { targets: [{ target: "c/w" }] } } });
    const [, , holder] = resolve(world, responses).targets;
    world.router.issued(holder, stored);
    world.router.answered(resolve(world, responses), holder, { conversation: { id: "conv_1" } });
    return world;
  }

  it.each([
    ["a response", { previous_response_id: "resp_1" }],
    ["a conversation", { conversation: "conv_1" }],
    ["a conversation object", { conversation: { id: "conv_1" } }],
    ["encrypted reasoning", { input: [{ role: "user" }, { ...encrypted, id: undefined }, { role: "user" }] }],
  ])("goes to the target that issued %s, then to others of that provider alone", (_name, body) => {
    const resolution = resolve(issued(), { ...responses, body });
    expect(ids(resolution.targets)).toEqual(["b/z", "b/y"]);
    expect(resolution.pinned).toBe(true);
    expect(resolution.skipped).toEqual([{ id: "a/x", reason: "conversation" }]);
  });

  it("goes there even while the target rests", () => {
    const world = issued();
    world.resting.add("b/z");
    expect(ids(resolve(world, { ...responses, body: { previous_response_id: "resp_1" } }).targets)[0]).toBe("b/z");
  });

  it("is a 400 for a model without a target at that provider", () => {
    const failure = resolve(issued(), { ...responses, requested: "other", body: { previous_response_id: "resp_1" } });
    expect(failure).toMatchObject({ status: 400, code: "conversation_elsewhere" });
  });

  it("that nobody remembers goes to the first target that does not rest, and stays with its provider", () => {
    const world = issued();
    const facts = { ...responses, body: { previous_response_id: "resp_unknown" } };
    expect(ids(resolve(world, facts).targets)).toEqual(["a/x"]);
    world.resting.add("a/x");
    expect(ids(resolve(world, facts).targets)).toEqual(["b/y", "b/z"]);
  });

  it.each([
    {},
    { previous_response_id: null },
    { previous_response_id: "" },
    { input: "hi" },
    { input: [{ type: "reasoning", encrypted_content: null }] },
  ])("is no such call with %j", (body) => {
    expect(ids(resolve(issued(), { ...responses, body }).targets)).toEqual(["a/x", "b/y", "b/z"]);
  });

  it("does not take what the text of an answer says for an id", () => {
    const world = scene({ models: { m: { targets } } });
    const [target] = resolve(world, responses).targets;
    world.router.issued(target, {
      type: "response.output_text.delta",
      id: "resp_2",
      delta: '{"response":{"id":"resp_2"}}',
    });
    expect(world.store.holder("resp_2")).toBeUndefined();
  });
});
