/** Options that every adapter takes, checked once, when the middleware is made. */

import { ConfigError } from "../errors.js";
import type { Identify } from "./identify.js";

export interface AdapterOptions<Source> {
  /** Says who calls, from what the host's own auth left on the request. Default: nobody in particular. */
  readonly identify?: Identify<Source> | undefined;
  /**
   * Path below which the APIs are served, e.g. `/llm`: then `/llm/v1/messages` and `/llm/messages` match, and nothing
   * else does. For frameworks that do not strip the mount path. Default: none.
   */
  readonly prefix?: string | undefined;
}

const known: ReadonlySet<string> = new Set(["identify", "prefix"] satisfies (keyof AdapterOptions<unknown>)[]);

/** @throws ConfigError */
export function checkAdapterOptions<Source>(options: AdapterOptions<Source>): AdapterOptions<Source> {
  const { identify, prefix } = options;
  for (const name of Object.keys(options)) {
    if (!known.has(name)) throw new ConfigError(`options.${name}`, `unknown; known are ${[...known].join(" and ")}`);
  }
  if (identify !== undefined && typeof identify !== "function") {
    throw new ConfigError("options.identify", "must be a function");
  }
  if (prefix !== undefined && (typeof prefix !== "string" || !/^(\/[^/?#]+)+\/?$/.test(prefix))) {
    throw new ConfigError("options.prefix", 'must be a path such as "/llm"');
  }
  return { identify, prefix: prefix?.replace(/\/$/, "") };
}

export interface Place {
  /** Path and query below the mount point. */
  readonly url: string;
  readonly mounted: boolean;
}

/**
 * @param mounted whether the framework has stripped a mount path already
 * @returns undefined for a URL that is not below the prefix
 */
export function locate(url: string, prefix: string | undefined, mounted: boolean): Place | undefined {
  if (prefix === undefined) return { url, mounted };
  if (!url.startsWith(prefix)) return undefined;
  const rest = url.slice(prefix.length);
  return rest.startsWith("/") ? { url: rest, mounted: true } : undefined;
}
