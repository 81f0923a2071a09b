/**
 * The path of a request to a provider. It is built from the configuration and the route alone: nothing of the client's
 * URL is in it but the model and the id, each as one encoded segment, and allow-listed query parameters.
 */

import type { RoutePath } from "../api-path.js";
import type { ProviderType } from "../config/provider-config.js";

/** What of a provider's configuration decides the path. */
export interface PathProvider {
  readonly type: ProviderType;
  /** Begins with a slash and does not end in one, or is empty. */
  readonly basePath: string;
  readonly apiVersion?: string | undefined;
}

export interface PathFacts {
  readonly route: RoutePath;
  /** The target's model, unencoded. Needed for routes and providers with the model in the path. */
  readonly model?: string | undefined;
  /** Response id, unencoded, for `/v1/responses/{id}`. */
  readonly id?: string | undefined;
  /** The client's query, with or without the question mark. */
  readonly query?: string | undefined;
}

/** No path can be built. For the client; holds nothing of the request. */
export interface InvalidPath {
  readonly invalidPath: string;
}

/** Path and query, beginning with one slash, or why there is none. Never throws. */
export function upstreamPath(provider: PathProvider, facts: PathFacts): string | InvalidPath {
  const template = providerTemplate(provider, facts.route);
  let path = template;
  if (template.includes("{model}")) {
    const segment = modelSegment(facts.model);
    if (segment === undefined) return { invalidPath: "The model cannot be part of a path" };
    path = path.replace("{model}", () => segment);
  }
  if (template.includes("{id}")) {
    const { id } = facts;
    if (id === undefined || !isPlainId(id)) return { invalidPath: "The response id is not valid" };
    path = path.replace("{id}", () => id);
  }
  const full = provider.basePath + path;
  if (!isSafePath(full)) return { invalidPath: "The path at the provider would not be valid" };
  const query = upstreamQuery(provider, facts);
  return query === "" ? full : `${full}?${query}`;
}

function providerTemplate({ type, basePath, apiVersion }: PathProvider, route: RoutePath): string {
  switch (type) {
    case "openai":
    case "openai-compatible":
      if (!route.startsWith("/v1/")) return route;
      // The base URL of OpenAI-shaped providers carries the version. For Messages it need not; it is never doubled.
      return route.startsWith("/v1/messages") && !basePath.endsWith("/v1") ? route : route.slice("/v1".length);
    case "azure":
      return azureTemplate(route, apiVersion !== undefined);
    default:
      return route;
  }
}

const azureByDeployment: ReadonlySet<RoutePath> = new Set([
  "/v1/chat/completions",
  "/v1/completions",
  "/v1/embeddings",
]);

function azureTemplate(route: RoutePath, dated: boolean): string {
  if (azureByDeployment.has(route) || route.startsWith("/v1/responses")) {
    if (!dated) return `/openai${route}`;
    const operation = route.slice("/v1".length);
    return azureByDeployment.has(route) ? `/openai/deployments/{model}${operation}` : `/openai${operation}`;
  }
  return route;
}

/** One segment, whatever the model is called: slashes of a Bedrock ARN and colons are encoded. */
function modelSegment(model: string | undefined): string | undefined {
  // The encoding leaves dots as they are.
  if (model === undefined || /^\.*$/.test(model)) return undefined;
  try {
    return encodeURIComponent(model);
  } catch {
    // Half of a surrogate pair.
    return undefined;
  }
}

function isPlainId(id: string): boolean {
  return /^[\w.~:-]{1,512}$/.test(id) && !/^\.+$/.test(id);
}

/** The last check, on the result: it names no other host, and no proxy behind it can resolve it to another path. */
function isSafePath(path: string): boolean {
  return (
    /^\/(?:[\w.~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2}|\/(?!\/))*$/.test(path) &&
    !path.startsWith("//") &&
    !/\/(?:\.|%2e){1,2}(?:\/|$)/i.test(path)
  );
}

const always: ReadonlySet<string> = new Set(["alt", "beta"]);

/** The official SDKs send a list as `include[]`. */
const ofStoredResponse: ReadonlySet<string> = new Set([
  "stream",
  "starting_after",
  "include",
  "include[]",
  "include_obfuscation",
]);

function upstreamQuery({ type, apiVersion }: PathProvider, { route, query }: PathFacts): string {
  if (apiVersion === undefined && (query === undefined || query === "")) return "";
  const out = new URLSearchParams();
  const isStored = route === "/v1/responses/{id}";
  for (const [name, value] of new URLSearchParams(query)) {
    if (always.has(name) || (isStored && ofStoredResponse.has(name))) out.append(name, value);
  }
  if (type === "azure" && apiVersion !== undefined) out.set("api-version", apiVersion);
  return out.toString();
}
