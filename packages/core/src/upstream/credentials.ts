/** Which header carries a credential, for each type of provider, and where clients put theirs. */

import type { ProviderType } from "../config/provider-config.js";
import { credentialHeaders, type ClientHeaders } from "../headers.js";

export interface CredentialHeader {
  readonly name: string;
  readonly value: string;
}

const keyHeader: Readonly<Record<ProviderType, string>> = {
  openai: "authorization",
  "openai-compatible": "authorization",
  anthropic: "x-api-key",
  "anthropic-compatible": "x-api-key",
  azure: "api-key",
  google: "x-goog-api-key",
  bedrock: "authorization",
  ollama: "authorization",
};

/** The header in which this type of provider takes an API key. */
export function apiKeyHeader(type: ProviderType, key: string): CredentialHeader {
  const name = keyHeader[type];
  return { name, value: name === "authorization" ? `Bearer ${key}` : key };
}

/**
 * The client's own credential, moved to the header that the provider type uses. It is read from that header first, then
 * from the others, since an SDK of another vendor may be what calls. Undefined: the client sent none.
 *
 * A bearer token that can only be an OAuth token stays one, since vendors do not take those as API keys: Anthropic's
 * `sk-ant-oat…`, Google's `ya29.…`, and a JWT (Microsoft Entra ID).
 *
 * @param queryKey the client's query parameter `key`, in which Gemini clients may send it
 */
export function clientCredential(
  type: ProviderType,
  headers: ClientHeaders,
  queryKey?: string,
): CredentialHeader | undefined {
  const own = keyHeader[type];
  for (const name of [own, ...credentialHeaders.filter((other) => other !== own)]) {
    const key = keyIn(headers, name);
    if (key === undefined) continue;
    if (name === "authorization" && isOauthToken(key)) return { name, value: `Bearer ${key}` };
    return apiKeyHeader(type, key);
  }
  return queryKey === undefined || queryKey === "" ? undefined : apiKeyHeader(type, queryKey);
}

function keyIn(headers: ClientHeaders, name: string): string | undefined {
  const header = Object.hasOwn(headers, name) ? headers[name] : undefined;
  const value = typeof header === "object" ? header[0] : header;
  // Other schemes (Basic) are the host's own business, not a provider's key.
  const key = name === "authorization" ? /^bearer +(.*)$/i.exec(value ?? "")?.[1] : value;
  return key?.trim() || undefined;
}

function isOauthToken(token: string): boolean {
  return /^sk-ant-oat|^ya29\.|^eyJ[\w-]+\.[\w-]+\.[\w-]*$/.test(token);
}
