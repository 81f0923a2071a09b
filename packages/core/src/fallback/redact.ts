/** Keeps what a request was authorized with out of what is said of its failure: some providers repeat the key they were sent. */

import type { Failure } from "../errors.js";

/** A shorter one would be found in ordinary words. */
const minLength = 8;
const secretName = /auth|key|token|secret|cookie/i;

/** @param headers name, value, name, value, … of the request to the provider */
export function secretsOf(headers: readonly string[], apiKey: string | undefined): readonly string[] {
  const secrets = new Set(apiKey === undefined ? [] : [apiKey]);
  for (let index = 0; index + 1 < headers.length; index += 2) {
    if (secretName.test(headers[index] ?? "")) secrets.add((headers[index + 1] ?? "").replace(/^Bearer /, ""));
  }
  return [...secrets].filter((secret) => secret.length >= minLength);
}

export function redact(failure: Failure, secrets: readonly string[]): Failure {
  const { message, code, type, param } = failure;
  const said = [message, code, type, param].filter((text) => typeof text === "string").join("\n");
  if (!secrets.some((secret) => said.includes(secret))) return failure;
  const clean = (text: string): string =>
    secrets.reduce((current, secret) => current.replaceAll(secret, "[redacted]"), text);
  return {
    ...failure,
    message: clean(message),
    code: clean(code),
    ...(type === undefined ? {} : { type: clean(type) }),
    ...(typeof param === "string" ? { param: clean(param) } : {}),
  };
}
