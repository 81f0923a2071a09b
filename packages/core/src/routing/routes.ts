/** Which API a request is for: a fixed map of paths, no patterns on untrusted text. */

import type { ProtocolName } from "../gate/protocols/protocol.js";
import type { RoutePath } from "../upstream/path.js";

/** One endpoint that a client may call. */
export interface Route {
  readonly protocol: ProtocolName;
  /** Path at the provider, with the version prefix: `/v1/messages`. */
  readonly path: RoutePath;
}

interface Endpoint extends Route {
  readonly method: string;
  /** Also below a mount path, where the version prefix is the host's. */
  readonly short: string;
}

const endpoints: readonly Endpoint[] = [
  { method: "POST", path: "/v1/messages", short: "/messages", protocol: "anthropic-messages" },
  { method: "POST", path: "/v1/responses", short: "/responses", protocol: "openai-responses" },
  { method: "POST", path: "/v1/chat/completions", short: "/chat/completions", protocol: "openai-chat" },
];

/**
 * @param url path and query as they came
 * @param served the protocols that a configured provider serves: the others are not ours
 * @param mounted below a mount path the version prefix may be left out
 */
export function matchRoute(method: string, url: string, mounted: boolean, served: ReadonlySet<ProtocolName>): Route | undefined {
  const query = url.indexOf("?");
  const path = query === -1 ? url : url.slice(0, query);
  return endpoints.find(
    (endpoint) =>
      endpoint.method === method && (endpoint.path === path || (mounted && endpoint.short === path)) && served.has(endpoint.protocol),
  );
}

/** Query of the request, without the `?`; empty if there is none. */
export function queryOf(url: string): string {
  const at = url.indexOf("?");
  return at === -1 ? "" : url.slice(at + 1);
}
