/** Request headers by which a client steers the gateway. */

import { maxTimerMs } from "../clock.js";
import type { Failure } from "../errors.js";
import { badRequest } from "../request-failures.js";
import type { GatewayRequest } from "../request.js";

export interface ControlHeaders {
  /** In ms. Undefined: not sent, or not a streaming request. */
  readonly ttftTimeoutMs: number | undefined;
  readonly requestTimeoutMs: number | undefined;
}

/** @returns the values, or a 400 that names the header and what would be right */
export function readControlHeaders(headers: GatewayRequest["headers"], prefix: string, streaming: boolean): ControlHeaders | Failure {
  const ttftTimeoutMs = streaming ? milliseconds(headers, `${prefix}ttft-timeout-ms`) : undefined;
  if (typeof ttftTimeoutMs === "object") return ttftTimeoutMs;
  const requestTimeoutMs = milliseconds(headers, `${prefix}request-timeout`);
  if (typeof requestTimeoutMs === "object") return requestTimeoutMs;
  return { ttftTimeoutMs, requestTimeoutMs };
}

function milliseconds(headers: GatewayRequest["headers"], name: string): number | Failure | undefined {
  const value = Object.hasOwn(headers, name) ? headers[name] : undefined;
  if (value === undefined) return undefined;
  const number = typeof value === "string" && /^\d{1,10}$/.test(value) ? Number(value) : 0;
  if (number > 0 && number <= maxTimerMs) return number;
  return badRequest(`The header \`${name}\` must be a whole number of milliseconds from 1 to ${maxTimerMs}, in decimal digits.`, name);
}
