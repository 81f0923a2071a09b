/** Request headers by which a client steers the gateway. */

import { maxTimerMs } from "../clock.js";
import type { Failure } from "../errors.js";
import { badRequest } from "../request-failures.js";
import type { GatewayRequest } from "../request.js";

export interface ControlHeaders {
  /** In ms. Undefined: not sent, or not a streaming request. */
  readonly ttftTimeoutMs: number | undefined;
  readonly requestTimeoutMs: number | undefined;
  /** The provider of the model, where it is named apart from it. */
  readonly providerName: string | undefined;
}

interface Names {
  readonly prefix: string;
  readonly ttftTimeoutMs: string;
  readonly requestTimeout: string;
  readonly providerName: string;
}

/** Of the last prefix: nearly every process has one. */
let names: Names = namesOf("x-tfy-");

function namesOf(prefix: string): Names {
  return {
    prefix,
    ttftTimeoutMs: `${prefix}ttft-timeout-ms`,
    requestTimeout: `${prefix}request-timeout`,
    providerName: `${prefix}provider-name`,
  };
}

/** @returns the values, or a 400 that names the header and what would be right */
export function readControlHeaders(
  headers: GatewayRequest["headers"],
  prefix: string,
  streaming: boolean,
): ControlHeaders | Failure {
  if (names.prefix !== prefix) names = namesOf(prefix);
  const ttftTimeoutMs = streaming ? milliseconds(headers, names.ttftTimeoutMs) : undefined;
  if (typeof ttftTimeoutMs === "object") return ttftTimeoutMs;
  const requestTimeoutMs = milliseconds(headers, names.requestTimeout);
  if (typeof requestTimeoutMs === "object") return requestTimeoutMs;
  const providerName = plainName(headers, names.providerName);
  if (typeof providerName === "object") return providerName;
  return { ttftTimeoutMs, requestTimeoutMs, providerName };
}

function plainName(headers: GatewayRequest["headers"], name: string): string | Failure | undefined {
  const value = Object.hasOwn(headers, name) ? headers[name] : undefined;
  if (value === undefined) return undefined;
  if (typeof value === "string" && /^[\x21-\x7e]{1,200}$/.test(value) && !/[/*]/.test(value)) return value;
  return badRequest(`The header \`${name}\` must be the name of one provider, without a slash.`, name);
}

function milliseconds(headers: GatewayRequest["headers"], name: string): number | Failure | undefined {
  const value = Object.hasOwn(headers, name) ? headers[name] : undefined;
  if (value === undefined) return undefined;
  const number = typeof value === "string" && /^\d{1,10}$/.test(value) ? Number(value) : 0;
  if (number > 0 && number <= maxTimerMs) return number;
  return badRequest(
    `The header \`${name}\` must be a whole number of milliseconds from 1 to ${maxTimerMs}, in decimal digits.`,
    name,
  );
}
