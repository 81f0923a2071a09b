/** `baseUrl` of a provider: defaults, and the mistakes that would show only as a 404 from the provider. */

import type { ProviderType } from "./provider-config.js";

export interface BaseUrl {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Begins with a slash and does not end in one, or is empty. */
  readonly basePath: string;
}

const defaults: Readonly<Partial<Record<ProviderType, string>>> = {
  openai: "https://api.openai.com/v1",
  anthropic: "https://api.anthropic.com",
  google: "https://generativelanguage.googleapis.com",
};

/** Ends of a path that the gateway adds itself. */
const apiPaths: Readonly<Record<ProviderType, RegExp>> = {
  openai: /\/(chat\/completions|completions|responses|embeddings|models)$/,
  "openai-compatible": /\/(chat\/completions|completions|responses|embeddings|models)$/,
  anthropic: /\/v1(\/messages)?$/,
  "anthropic-compatible": /\/v1(\/messages)?$/,
  azure: /\/openai(\/v1|\/responses|\/deployments(\/.*)?)?$/,
  google: /\/v1(alpha|beta)?(\/models|\/interactions)?$/,
  bedrock: /\/model$/,
  ollama: /\/(v1|api(\/chat)?)$/,
};

/** The vendor's URL, where the type has one. Bedrock's follows from the region. */
export function defaultBaseUrl(type: ProviderType, region: string | undefined): string | undefined {
  if (type === "bedrock") return region === undefined ? undefined : `https://bedrock-runtime.${region}.amazonaws.com`;
  return defaults[type];
}

/** Why the type needs a `baseUrl` of its own, as the end of a sentence. */
export function baseUrlRemedy(type: ProviderType): string {
  switch (type) {
    case "bedrock":
      return "is missing: set `region`, or `baseUrl` to the URL of the runtime endpoint";
    case "azure":
      return "is missing: set it to the origin of the resource, https://{resource}.openai.azure.com";
    case "ollama":
      return "is missing: set it to the origin of the server, e.g. http://127.0.0.1:11434";
    case "openai-compatible":
      return "is missing: set it to the URL that the server's own docs give, mostly one that ends in /v1";
    default:
      return "is missing: set it to the URL of the server, without the version and the API path";
  }
}

/** The parsed URL, or what is wrong with it. The URL is never repeated: it may hold a password. */
export function parseBaseUrl(text: string, type: ProviderType): BaseUrl | { readonly problem: string } {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || /[\s\\]/.test(text) || !/^https?:\/\//i.test(text)) {
    return { problem: "must be an absolute http:// or https:// URL" };
  }
  if (url.username !== "" || url.password !== "") {
    return { problem: "must not hold a user name or password: use `apiKey`, or `headers` for another scheme" };
  }
  if (/[?#]/.test(text)) return { problem: "must not hold a query or a hash: leave both out" };
  const basePath = url.pathname.replace(/\/+$/, "");
  if (basePath.includes("//")) return { problem: "must not hold an empty path segment (`//`)" };
  const problem = pathProblem(basePath, type);
  return problem === undefined ? { origin: url.origin, basePath } : { problem };
}

function pathProblem(path: string, type: ProviderType): string | undefined {
  const match = apiPaths[type].exec(path);
  if (match === null) return undefined;
  return type === "openai" || type === "openai-compatible"
    ? `must not carry the API path, which the gateway adds: leave ${match[0]} off its end`
    : `must not carry the version or API path, which the gateway adds: leave ${match[0]} off its end`;
}
