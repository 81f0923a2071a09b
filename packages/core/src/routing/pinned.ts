/**
 * Stateful Responses conversations. What a provider stored or encrypted is known to that provider's account alone, so a
 * call that refers to it goes to the target that issued it, even a resting one, and never to another provider.
 */

import { createHash } from "node:crypto";
import { arrayAt, isObject, stringAt, type JsonObject } from "../gate/json-value.js";
import { parseTargetRef } from "../config/target-ref.js";
import type { RoutedTarget } from "./resolve.js";

/** Longest id that is remembered or looked up, in characters. */
const maxIdLength = 512;
/** Most encrypted items of one request or answer that are looked at, the latest. */
const maxItems = 32;

/** What a Responses request refers to, as keys of the health store. The one that decides comes first. */
export function conversationKeys(body: JsonObject): string[] {
  const named = [stringAt(body, "previous_response_id"), conversationOf(body)];
  return [...named.filter(isId), ...encryptedKeys(arrayAt(body, "input"))];
}

/** The conversation that a request belongs to. */
export function conversationOf(body: JsonObject): string | undefined {
  const conversation = body["conversation"];
  const id = typeof conversation === "string" ? conversation : stringAt(conversation, "id");
  return isId(id) ? id : undefined;
}

/** What later requests may refer to, out of one decoded frame: the response's id and its encrypted items. */
export function issuedKeys(value: object): string[] {
  const outer = value as JsonObject;
  const response = isObject(outer["response"]) ? outer["response"] : outer;
  const isResponse = response !== outer || String(outer["object"]).startsWith("response");
  if (!isResponse) return [];
  const id = stringAt(response, "id");
  return [...(isId(id) ? [id] : []), ...encryptedKeys(arrayAt(response, "output"))];
}

/** Keys of the encrypted items (reasoning, compaction), the latest first. Their ids do not do: clients leave them out. */
function encryptedKeys(items: readonly unknown[]): string[] {
  const keys: string[] = [];
  for (let index = items.length - 1; index >= 0 && keys.length < maxItems; index -= 1) {
    const item = items[index];
    const encrypted = isObject(item) ? item["encrypted_content"] : undefined;
    if (typeof encrypted !== "string" || encrypted === "") continue;
    keys.push(`encrypted:${createHash("sha256").update(encrypted).digest("base64")}`);
  }
  return keys;
}

export function isId(id: unknown): id is string {
  return typeof id === "string" && id !== "" && id.length <= maxIdLength;
}

/**
 * The targets of the holder's provider, the holder itself first.
 *
 * @param holder `provider/model`
 * @returns empty where the model has no target at that provider
 */
export function pinnedTo(holder: string, order: readonly RoutedTarget[]): RoutedTarget[] {
  const provider = parseTargetRef(holder)?.provider;
  const same = order.filter(({ target }) => target.provider.name === provider);
  return [...same.filter(({ id }) => id === holder), ...same.filter(({ id }) => id !== holder)];
}
