/** Providers: defaults of the type, and the checks that depend on it. */

import type { ProviderConfig, ProviderType } from "./provider-config.js";
import { baseUrlRemedy, defaultBaseUrl, parseBaseUrl, type BaseUrl } from "./base-url.js";
import { defaultProtocols } from "./defaults.js";
import { forwardHeaderProblem, headerNameProblem, headerValueProblem } from "./header-rules.js";
import type { Path, Problems } from "./problems.js";
import type { ResolvedProvider } from "./resolved.js";

/** Whole even where problems were added, so that the rest of the configuration can be checked too. */
export function resolveProvider(name: string, config: ProviderConfig, problems: Problems): ResolvedProvider {
  const path: Path = ["providers", name];
  const nameProblem = providerNameProblem(name);
  if (nameProblem !== undefined) problems.add(path, nameProblem);
  checkKeysOfType(config, path, problems);
  checkApiKey(config, path, problems);
  return Object.freeze({
    name,
    type: config.type,
    ...resolveBaseUrl(config, path, problems),
    protocols: new Set(config.protocols ?? defaultProtocols[config.type]),
    apiKey: config.apiKey,
    forwardClientCredentials: config.forwardClientCredentials ?? false,
    headers: resolveHeaders(config.headers ?? {}, [...path, "headers"], problems),
    forwardHeaders: resolveForwardHeaders(config.forwardHeaders ?? [], [...path, "forwardHeaders"], problems),
    requireTerminal: config.requireTerminal ?? !config.type.endsWith("-compatible"),
    apiVersion: config.apiVersion,
    region: config.region,
    sign: config.sign,
  });
}

/** Names stand in `provider/model`, in headers and in patterns. */
function providerNameProblem(name: string): string | undefined {
  if (name === "") return "a provider needs a name";
  if (name.includes("/")) return "the name of a provider must not contain `/`, which divides provider and model";
  if (name.includes("*")) return "the name of a provider must not contain `*`, which makes a pattern";
  if (!/^[\u0021-\u007e]+$/.test(name)) return "the name of a provider must be visible ASCII without white space";
  return undefined;
}

function checkKeysOfType(config: ProviderConfig, path: Path, problems: Problems): void {
  const only = (key: "apiVersion" | "region" | "sign", type: ProviderType): void => {
    if (config[key] !== undefined && config.type !== type) {
      problems.add([...path, key], `is for providers of type "${type}" only: leave it out here`);
    }
  };
  only("apiVersion", "azure");
  only("region", "bedrock");
  only("sign", "bedrock");
  if (config.apiVersion !== undefined && !/^[\w.-]+$/.test(config.apiVersion)) {
    problems.add([...path, "apiVersion"], "must be an API version such as 2024-10-21");
  }
  if (config.region !== undefined && !/^[a-z0-9-]+$/.test(config.region)) {
    problems.add([...path, "region"], "must be an AWS region such as eu-central-1");
  }
}

function checkApiKey(config: ProviderConfig, path: Path, problems: Problems): void {
  const at = [...path, "apiKey"];
  const { apiKey } = config;
  if (typeof apiKey === "string" && apiKey.trim() !== "") {
    const problem = headerValueProblem(apiKey);
    if (problem !== undefined) problems.add(at, problem);
  } else if ("apiKey" in config && typeof apiKey !== "function") {
    const state = apiKey === undefined ? "undefined" : "empty";
    const way = needsApiKey(config) ? "" : " Leave `apiKey` out where no key is meant";
    problems.add(at, `is present but ${state}: is an environment variable not set?${way}`);
  } else if (apiKey === undefined && needsApiKey(config)) {
    const ways = config.type === "bedrock" ? "Set it, or `sign`," : "Set it,";
    problems.add(at, `is missing. ${ways} or \`forwardClientCredentials: true\` to pass on the client's own`);
  }
}

function needsApiKey(config: ProviderConfig): boolean {
  if (config.forwardClientCredentials === true) return false;
  if (config.type === "bedrock") return config.sign === undefined;
  return config.type === "openai" || config.type === "anthropic" || config.type === "azure" || config.type === "google";
}

function resolveBaseUrl(config: ProviderConfig, path: Path, problems: Problems): BaseUrl {
  const none: BaseUrl = { origin: "", basePath: "" };
  const text = config.baseUrl ?? defaultBaseUrl(config.type, config.region);
  if (text === undefined) {
    problems.add([...path, "baseUrl"], baseUrlRemedy(config.type));
    return none;
  }
  // A region that is no host name is reported as such.
  if (config.baseUrl === undefined && !URL.canParse(text)) return none;
  const parsed = parseBaseUrl(text, config.type);
  if (!("problem" in parsed)) return parsed;
  problems.add([...path, "baseUrl"], parsed.problem);
  return none;
}

/** Lower-case names with their values. Two spellings of one name would be sent as two headers. */
export function resolveHeaders(
  headers: Readonly<Record<string, string>>,
  path: Path,
  problems: Problems,
): readonly (readonly [name: string, value: string])[] {
  const resolved = new Map<string, string>();
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    const problem =
      headerNameProblem(name) ?? (resolved.has(lower) ? "is there twice, in two spellings" : headerValueProblem(value));
    if (problem !== undefined) problems.add([...path, name], problem);
    resolved.set(lower, value);
  }
  return Object.freeze([...resolved].map((entry) => Object.freeze(entry)));
}

function resolveForwardHeaders(names: readonly string[], path: Path, problems: Problems): ReadonlySet<string> {
  for (const [index, name] of names.entries()) {
    const problem = forwardHeaderProblem(name);
    if (problem !== undefined) problems.add([...path, index], problem);
  }
  return new Set(names.map((name) => name.toLowerCase()));
}
