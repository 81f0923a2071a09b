/** Which API a request is for: a fixed map of paths, no patterns on untrusted text. */

import type { ProtocolName } from "../gate/protocols/protocol.js";
import type { RoutePath } from "../api-path.js";
import { parseModelPath } from "./model-path.js";

/** Endpoints that call for no model, or for no provider at all. */
export type RoutePurpose = "stored-response" | "list-models";

/** One endpoint that a client may call. */
export interface Route {
  readonly protocol: ProtocolName;
  /** Path at the provider, with the version prefix: `/v1/messages`. */
  readonly path: RoutePath;
  /** Whether the answer is a stream, where the path decides it. Undefined: the body does. */
  readonly streaming?: boolean | undefined;
  /** The model, where it stands in the path. Undefined: it is in the body. */
  readonly model?: string | undefined;
  /** False: an answer says nothing of the target's health, such as a count of tokens. */
  readonly probesHealth?: boolean | undefined;
  /** Its answers have an id, or encrypted items, that later requests refer to. */
  readonly issuesIds?: boolean | undefined;
  /** Relayed ungated although it may stream. */
  readonly relayed?: boolean | undefined;
  /** Takes no parameters of a generation: of a target's configuration `overrideParams` is left out. */
  readonly ignoresOverrides?: boolean | undefined;
  readonly purpose?: RoutePurpose | undefined;
  /** Of the stored response that it is about. */
  readonly id?: string | undefined;
}

interface Endpoint extends Route {
  /** Also below a mount path, where the version prefix is the host's. */
  readonly short: string;
}

/** Called with `POST`, the model in the body. */
const endpoints: readonly Endpoint[] = [
  { path: "/v1/messages", short: "/messages", protocol: "anthropic-messages" },
  { path: "/v1/responses", short: "/responses", protocol: "openai-responses", issuesIds: true },
  { path: "/v1/chat/completions", short: "/chat/completions", protocol: "openai-chat" },
  { path: "/v1beta/interactions", short: "/interactions", protocol: "gemini-interactions" },
  { path: "/api/chat", short: "/api/chat", protocol: "ollama" },
  { path: "/v1/messages/count_tokens", short: "/messages/count_tokens", protocol: "anthropic-messages", ...counting() },
  { path: "/v1/responses/input_tokens", short: "/responses/input_tokens", protocol: "openai-responses", ...counting() },
  {
    path: "/v1/responses/compact",
    short: "/responses/compact",
    protocol: "openai-responses",
    relayed: true,
    ignoresOverrides: true,
    issuesIds: true,
  },
  { path: "/v1/embeddings", short: "/embeddings", protocol: "openai-chat", relayed: true, ignoresOverrides: true },
  { path: "/v1/completions", short: "/completions", protocol: "openai-chat", relayed: true },
];

/** Not generation: it costs nothing, and that it works does not show that the model does. */
function counting(): Pick<Route, "relayed" | "ignoresOverrides" | "probesHealth" | "streaming"> {
  return { relayed: true, ignoresOverrides: true, probesHealth: false, streaming: false };
}

const gemini = "/v1beta";

/** Those with the model in the path. */
const modelEndpoints: readonly Endpoint[] = [
  ...(["streamGenerateContent", "generateContent", "countTokens"] as const).map((action): Endpoint => {
    const streaming = action === "streamGenerateContent";
    return {
      path: `${gemini}/models/{model}:${action}`,
      short: `/models/{model}:${action}`,
      protocol: "gemini",
      streaming,
      ...(action === "countTokens" ? counting() : {}),
    };
  }),
  bedrock("/model/{model}/invoke-with-response-stream", "bedrock-invoke", true),
  bedrock("/model/{model}/invoke", "bedrock-invoke", false),
  bedrock("/model/{model}/converse-stream", "bedrock-converse", true),
  bedrock("/model/{model}/converse", "bedrock-converse", false),
];

/** Bedrock's paths have no version. */
function bedrock(path: RoutePath, protocol: ProtocolName, streaming: boolean): Endpoint {
  return { path, short: path, protocol, streaming };
}

/**
 * @param url path and query as they came
 * @param served the protocols that a configured provider serves: the others are not ours
 * @param mounted below a mount path the version prefix may be left out
 */
export function matchRoute(
  method: string,
  url: string,
  mounted: boolean,
  served: ReadonlySet<ProtocolName>,
): Route | undefined {
  const query = url.indexOf("?");
  const path = query === -1 ? url : url.slice(0, query);
  const fixed = method === "POST" ? fixedEndpoint(path, mounted) : undefined;
  if (fixed !== undefined) return served.has(fixed.protocol) ? fixed : undefined;
  const other = matchModels(method, path, mounted, served) ?? matchStored(method, path, mounted);
  if (other !== undefined) return served.has(other.protocol) ? other : undefined;
  const route = method === "POST" ? matchModelRoute(path, mounted) : undefined;
  return route !== undefined && served.has(route.protocol) ? route : undefined;
}

function fixedEndpoint(path: string, mounted: boolean): Route | undefined {
  for (const endpoint of endpoints) if (endpoint.path === path || (mounted && endpoint.short === path)) return endpoint;
  return undefined;
}

/** The list of the virtual models, for SDKs of both shapes. */
function matchModels(
  method: string,
  path: string,
  mounted: boolean,
  served: ReadonlySet<ProtocolName>,
): Route | undefined {
  if (method !== "GET" || (path !== "/v1/models" && !(mounted && path === "/models"))) return undefined;
  const protocol = (["openai-chat", "openai-responses", "anthropic-messages"] as const).find((one) => served.has(one));
  return protocol && { protocol, path: "/v1/models", purpose: "list-models", streaming: false };
}

/** `GET`, `DELETE` and `/cancel` of a stored response. */
function matchStored(method: string, path: string, mounted: boolean): Route | undefined {
  const prefix = path.startsWith("/v1/responses/") ? "/v1/responses/" : "/responses/";
  if (!path.startsWith(prefix) || (prefix === "/responses/" && !mounted)) return undefined;
  const [id = "", action, ...rest] = path.slice(prefix.length).split("/");
  if (rest.length > 0 || !/^[\w.~:-]{1,512}$/.test(id) || /^\.+$/.test(id)) return undefined;
  const stored = {
    protocol: "openai-responses",
    purpose: "stored-response",
    relayed: true,
    probesHealth: false,
    id,
  } as const;
  if (action === undefined && (method === "GET" || method === "DELETE"))
    return { ...stored, path: "/v1/responses/{id}" };
  return action === "cancel" && method === "POST" ? { ...stored, path: "/v1/responses/{id}/cancel" } : undefined;
}

function matchModelRoute(path: string, mounted: boolean): Route | undefined {
  const versioned = path.startsWith(`${gemini}/`);
  const parsed = parseModelPath(versioned ? path.slice(gemini.length) : path);
  if (parsed === undefined) return undefined;
  const template = versioned ? gemini + parsed.template : parsed.template;
  const endpoint = modelEndpoints.find((one) => one.path === template || (mounted && one.short === template));
  return endpoint && { ...endpoint, model: parsed.model };
}

/** Query of the request, without the `?`; empty if there is none. */
export function queryOf(url: string): string {
  const at = url.indexOf("?");
  return at === -1 ? "" : url.slice(at + 1);
}
