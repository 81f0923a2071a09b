/** Sessions that stay at one target, so that its prompt cache is of use. In memory, bounded, per gateway. */

import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import type { ResolvedSticky } from "../config/resolved.js";
import { isObject, type JsonObject } from "../gate/json-value.js";
import type { GatewayRequest } from "../request.js";
import type { Metadata } from "./metadata.js";
import type { RoutedTarget } from "./resolve.js";

/** Sessions that are remembered; the one used least recently is forgotten first. */
const maxSessions = 100_000;

export interface SessionFacts {
  readonly headers: GatewayRequest["headers"];
  readonly metadata: Metadata;
  readonly body: JsonObject;
}

/** A session of one virtual model. */
export interface Session {
  readonly key: string;
  readonly ttlMs: number;
}

/** The session of a request, by the first identifier that it has. Undefined: none. */
export function sessionOf(model: string, sticky: ResolvedSticky, facts: SessionFacts): Session | undefined {
  for (const { source, key } of sticky.sessionIdentifiers) {
    const value = sessionValue(source, key, facts);
    if (value === undefined) continue;
    // Hashed: values may be long, and may be nobody's business.
    const hash = createHash("sha256")
      .update(JSON.stringify([model, source, key, value]))
      .digest("base64");
    return { key: hash, ttlMs: sticky.ttlSeconds * 1000 };
  }
  return undefined;
}

function sessionValue(source: "headers" | "metadata" | "body", key: string, facts: SessionFacts): string | undefined {
  switch (source) {
    case "headers": {
      const value = Object.hasOwn(facts.headers, key) ? facts.headers[key] : undefined;
      return text(typeof value === "object" ? value.join(", ") : value);
    }
    case "metadata":
      return text(facts.metadata.get(key));
    case "body":
      return text(valueAt(facts.body, key));
  }
}

/** A member by its name, or by a dotted path. */
function valueAt(body: JsonObject, path: string): unknown {
  if (Object.hasOwn(body, path)) return body[path];
  let value: unknown = body;
  for (const name of path.split(".")) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

function text(value: unknown): string | undefined {
  if (typeof value === "number") return String(value);
  return typeof value === "string" && value !== "" ? value : undefined;
}

interface Place {
  readonly target: string;
  /** Epoch ms. */
  readonly until: number;
}

export class StickySessions {
  readonly #places = new LRUCache<string, Place>({ max: maxSessions });

  /** The order with the session's target first. A new session stays at the first of the order. Renews its time. */
  order(session: Session, order: readonly RoutedTarget[], now: number): readonly RoutedTarget[] {
    const place = this.#places.get(session.key);
    const index = place === undefined || now >= place.until ? 0 : order.findIndex(({ id }) => id === place.target);
    // A target that this request may not use (another API, other metadata) does not end the session's stay there.
    if (index === -1) return order;
    const first = order[index] as RoutedTarget;
    this.stay(session, first.id, now);
    return index === 0 ? order : [first, ...order.filter((target) => target !== first)];
  }

  /** The session was answered by this target. */
  stay(session: Session, target: string, now: number): void {
    this.#places.set(session.key, { target, until: now + session.ttlMs });
  }
}
