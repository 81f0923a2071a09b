/** One request → the targets to try, in order, and those that it skips. */

import { targetFor } from "../config/resolve-target.js";
import type { ResolvedConfig, ResolvedProvider } from "../config/resolved.js";
import { parseTargetRef } from "../config/target-ref.js";
import type { Failure } from "../errors.js";
import type { JsonObject } from "../gate/json-value.js";
import type { ProtocolName } from "../gate/protocols/protocol.js";
import type { HealthStore } from "../health/store.js";
import type { GatewayRequest } from "../request.js";
import { apiNotServed, conversationElsewhere, modelNotFound, noTargetForRequest } from "../request-failures.js";
import type { Measured } from "./latency-order.js";
import { hasMetadata, type Metadata } from "./metadata.js";
import { orderTargets } from "./order.js";
import { conversationKeys, conversationOf, isId, issuedKeys, pinnedTo } from "./pinned.js";
import { findDestination, routed, type Destination, type RoutedTarget } from "./resolve.js";
import { sessionOf, StickySessions, type Session } from "./sticky.js";

/** Why a target of the model was left out: it serves another API, other metadata, or another provider holds the conversation. */
export type SkipReason = "api" | "metadata" | "conversation";

export interface SkippedTarget {
  /** `provider/model`. */
  readonly id: string;
  readonly reason: SkipReason;
}

export interface Resolution {
  /** The virtual model as configured, or `provider/model`: a bounded set of names, for records. */
  readonly name: string;
  /** The rule that decided. */
  readonly rule?: string | undefined;
  /** In the order to be tried; at least one. */
  readonly targets: readonly RoutedTarget[];
  readonly skipped: readonly SkippedTarget[];
  /** The order holds even where a target rests. */
  readonly pinned: boolean;
  readonly session?: Session | undefined;
}

/** What routing reads of a request. */
export interface RoutingFacts {
  /** The model that the client named. */
  readonly requested: string;
  readonly protocol: ProtocolName;
  /** For messages, e.g. `POST /v1/messages`. */
  readonly api: string;
  readonly headers: GatewayRequest["headers"];
  readonly body: JsonObject;
  readonly metadata: Metadata;
  readonly subject: string | undefined;
}

/** What routing asks of the targets' health. */
export interface RoutingHealth extends Measured {
  /** Epoch ms. */
  now(): number;
  backAt(targets: readonly string[]): readonly number[];
}

export interface RouterParts {
  readonly config: ResolvedConfig;
  readonly health: RoutingHealth;
  readonly store: HealthStore;
  /** In [0, 1). */
  readonly random: () => number;
}

interface Eligible {
  readonly eligible: readonly RoutedTarget[];
  readonly skipped: readonly SkippedTarget[];
}

const none: readonly SkippedTarget[] = [];

/** Whether the target serves the API, whatever the metadata of the request is. */
function servesAny({ target }: RoutedTarget, protocol: ProtocolName): boolean {
  return target.provider.protocols.has(protocol) && target.metadataMatch.length === 0;
}

export class Router {
  readonly #parts: RouterParts;
  readonly #sessions = new StickySessions();

  constructor(parts: RouterParts) {
    this.#parts = parts;
  }

  /** The targets, or a 404 (unknown model) or 400 (no target may serve the request). */
  resolve(facts: RoutingFacts): Resolution | Failure {
    const { config, health, random } = this.#parts;
    const destination = findDestination(config, facts);
    if (destination === undefined) return modelNotFound(facts.requested);
    const { eligible, skipped } = this.#eligible(destination, facts);
    if (eligible.length === 0) {
      const served = skipped.some(({ reason }) => reason !== "api");
      return served ? noTargetForRequest(facts.requested) : apiNotServed(facts.requested, facts.api);
    }
    const { name, rule, routing, sticky } = destination;
    const order = orderTargets(routing, eligible, health, random);
    const keys = facts.protocol === "openai-responses" ? conversationKeys(facts.body) : [];
    if (keys.length > 0) {
      const pinned = this.#pin(keys, order);
      if (pinned.targets.length === 0) return conversationElsewhere(facts.requested);
      const elsewhere = order.filter((target) => !pinned.targets.includes(target));
      const left = elsewhere.map(({ id }): SkippedTarget => ({ id, reason: "conversation" }));
      return { name, rule, ...pinned, skipped: [...skipped, ...left] };
    }
    const session = sticky === undefined ? undefined : sessionOf(name, sticky, facts);
    const targets = session === undefined ? order : this.#sessions.order(session, order, health.now());
    return { name, rule, targets, skipped, pinned: false, session };
  }

  /** The target that issued a response; else the first that serves the API. Undefined: none does. */
  resolveStored(id: string, protocol: ProtocolName): Resolution | undefined {
    const { config, store } = this.#parts;
    const known = isId(id) ? parseTargetRef(store.holder(id) ?? "") : undefined;
    const holder = known === undefined ? undefined : config.providers.get(known.provider);
    const serves = ({ protocols }: ResolvedProvider): boolean => protocols.has(protocol);
    // Without a holder the order of the configuration decides: of the models first, then of the providers.
    const configured = config.models.flatMap(({ targets }) => targets.map(({ provider }) => provider)).find(serves);
    const provider = holder ?? configured ?? [...config.providers.values()].find(serves);
    if (provider === undefined || !serves(provider)) return undefined;
    const model = holder === undefined ? "*" : (known?.model ?? "*");
    const listed = [...config.models, ...config.rules].flatMap(({ targets }) => targets);
    // The target itself where it is configured: it may have headers of its own.
    const found = listed.find((one) => one.provider === provider && one.model === model);
    const target = routed(found ?? targetFor(config, provider, model), "*");
    return { name: "stored", targets: [target], skipped: [], pinned: true };
  }

  /**
   * The target's answer was released: its session, and its conversation, stay there.
   *
   * @param body of a call whose answer issues ids: the others belong to no conversation
   */
  answered({ session, targets }: Resolution, target: RoutedTarget, body: JsonObject | undefined): void {
    if (session !== undefined && target !== targets[0])
      this.#sessions.stay(session, target.id, this.#parts.health.now());
    const conversation = body === undefined ? undefined : conversationOf(body);
    if (conversation !== undefined) this.#parts.store.setHolder(conversation, target.id);
  }

  /** A frame of a Responses answer: what it issues is known to this target alone. */
  issued(target: RoutedTarget, value: object): void {
    for (const key of issuedKeys(value)) this.#parts.store.setHolder(key, target.id);
  }

  #eligible({ targets }: Destination, facts: RoutingFacts): Eligible {
    if (targets.every((target) => servesAny(target, facts.protocol))) return { eligible: targets, skipped: none };
    const eligible: RoutedTarget[] = [];
    const skipped: SkippedTarget[] = [];
    for (const target of targets) {
      if (!target.target.provider.protocols.has(facts.protocol)) skipped.push({ id: target.id, reason: "api" });
      else if (!hasMetadata(facts.metadata, target.target.metadataMatch))
        skipped.push({ id: target.id, reason: "metadata" });
      else eligible.push(target);
    }
    return { eligible, skipped };
  }

  /** A conversation that nobody remembers goes to the first target that may be tried, and stays with its provider. */
  #pin(keys: readonly string[], order: readonly RoutedTarget[]): { targets: readonly RoutedTarget[]; pinned: boolean } {
    const { store, health } = this.#parts;
    for (const key of keys) {
      const holder = store.holder(key);
      if (holder !== undefined) return { targets: pinnedTo(holder, order), pinned: true };
    }
    const backAt = health.backAt(order.map(({ id }) => id));
    const first = order[Math.max(0, backAt.indexOf(0))] as RoutedTarget;
    return { targets: pinnedTo(first.id, order), pinned: false };
  }
}
