/** What the gateway reads of a request body, and the body as a target gets it. */

import { isAscii } from "node:buffer";
import { badRequest } from "../request-failures.js";
import type { Failure } from "../errors.js";
import { arrayAt, isObject, objectAt, stringAt, type JsonObject } from "../gate/json-value.js";
import type { ProtocolName } from "../gate/protocols/protocol.js";
import type { GatewayRequest } from "../request.js";
import { isAffordableJson } from "./json-shape.js";
import { editJsonObject, type JsonEdits } from "./json-edit.js";

export interface RequestBody {
  readonly value: JsonObject;
  /** The bytes as they came; undefined where a parser left only the value. */
  readonly bytes: Uint8Array | undefined;
}

/** Of a request that has none. */
export const emptyBody: RequestBody = { value: {}, bytes: undefined };

/** Throws for what is no UTF-8. Without a state between two bodies. */
const strictly = new TextDecoder("utf-8", { fatal: true });

function textOf(body: Uint8Array): string {
  // Of ASCII, as nearly every request, a character is a byte: the same text at half the cost.
  return isAscii(body) ? bufferOf(body).toString("latin1") : strictly.decode(body);
}

function bufferOf(bytes: Uint8Array): Buffer {
  return bytes instanceof Buffer ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export function readRequestBody(body: GatewayRequest["body"]): RequestBody | Failure {
  if (body === undefined) return badRequest("The request has no body. Send a JSON object.");
  if (!(body instanceof Uint8Array)) {
    return isObject(body.parsed) ? writtenAgain(body.parsed) : badRequest("The request body must be a JSON object.");
  }
  if (body.length === 0) return badRequest("The request body is empty. Send a JSON object.");
  if (!isAffordableJson(body))
    return badRequest("The request body is nested too deeply, or holds too many objects and arrays.");
  let value: unknown;
  try {
    value = JSON.parse(textOf(body));
  } catch {
    return badRequest("The request body is not valid JSON.");
  }
  return isObject(value) ? { value, bytes: body } : badRequest("The request body must be a JSON object.");
}

/** Once for all targets. What a parser took may be too deep to be written, or hold what JSON cannot. */
function writtenAgain(value: JsonObject): RequestBody | Failure {
  try {
    return { value, bytes: Buffer.from(JSON.stringify(value)) };
  } catch {
    return badRequest("The request body cannot be written as JSON.");
  }
}

/** The body with members replaced, added (value) or removed (`undefined`); the bytes as they came where nothing changes. */
export function encodeBody(body: RequestBody, edits: JsonEdits): Uint8Array {
  const changes = new Map(
    [...edits].filter(([key, value]) =>
      value === undefined ? Object.hasOwn(body.value, key) : body.value[key] !== value,
    ),
  );
  if (body.bytes === undefined) {
    // Own keys only: a `__proto__` member of the client's JSON stays data. A member that is undefined is not written.
    return Buffer.from(JSON.stringify(Object.fromEntries([...Object.entries(body.value), ...changes])));
  }
  for (const [key, value] of edits) if (value !== undefined && isRepeated(body.bytes, key)) changes.set(key, value);
  if (changes.size === 0) return body.bytes;
  return Buffer.from(editJsonObject(new TextDecoder().decode(body.bytes), changes));
}

/** Whether the body says this already, in its bytes too: they need not be touched then. */
export function says(body: RequestBody, key: string, value: string): body is RequestBody & { bytes: Uint8Array } {
  return body.bytes !== undefined && body.value[key] === value && !isRepeated(body.bytes, key);
}

const quoted = new Map([
  ["model", Buffer.from('"model"')],
  ["agent", Buffer.from('"agent"')],
]);

/**
 * Whether the name may stand more than once: a cheap look that may also find it in depth. Of two members of one name the
 * parser here took the last, and a provider's may take the first.
 */
function isRepeated(bytes: Uint8Array, key: string): boolean {
  const text = bufferOf(bytes);
  const name = quoted.get(key) ?? Buffer.from(JSON.stringify(key));
  const first = text.indexOf(name);
  return first !== -1 && text.includes(name, first + name.length);
}

/** Whether the client asked for a stream. */
export function isStreaming(protocol: ProtocolName, value: JsonObject): boolean {
  return protocol === "ollama" ? value["stream"] !== false : value["stream"] === true;
}

/** Where the model stands in a body. Interactions with an agent name that in place of a model. */
export function modelKey(protocol: ProtocolName, value: JsonObject): "model" | "agent" {
  return protocol === "gemini-interactions" && value["model"] === undefined && value["agent"] !== undefined
    ? "agent"
    : "model";
}

/** Where each API keeps the turns of the conversation; the others: `messages`. */
const turnsKeys: Partial<Record<ProtocolName, string>> = {
  "openai-responses": "input",
  "gemini-interactions": "input",
  gemini: "contents",
};

/** Whether the last message of the request is a tool result: a model may well answer it with nothing. */
export function answersToolResult(protocol: ProtocolName, value: JsonObject): boolean {
  const turns = arrayAt(value, turnsKeys[protocol] ?? "messages");
  const last = turns[turns.length - 1];
  if (!isObject(last)) return false;
  if (protocol === "openai-responses") return (stringAt(last, "type") ?? "").endsWith("_output");
  if (protocol === "gemini-interactions" && (stringAt(last, "type") ?? "").endsWith("_result")) return true;
  if (last["role"] === "tool" || last["role"] === "function") return true;
  if (arrayAt(last, "parts").some((part) => isObject(part) && isObject(part["functionResponse"]))) return true;
  return arrayAt(last, "content").some((part) => {
    const type = stringAt(part, "type") ?? "";
    return type.endsWith("tool_result") || Object.keys(objectAt(part, "toolResult")).length > 0;
  });
}
