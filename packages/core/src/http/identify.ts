/** The hand-off from the host's own auth. */

import type { Failure } from "../errors.js";
import { authRejected } from "../request-failures.js";
import type { Identity } from "../request.js";

/** `undefined`: nothing is known of the caller, which is fine. */
export type IdentifyResult = Identity | { readonly reject: 401 | 403 } | undefined;

/** Called once for each request that is the gateway's. What it throws is the host's error and goes to its handler. */
export type Identify<Source> = (source: Source) => IdentifyResult | Promise<IdentifyResult>;

export type IdentifyOutcome = { readonly identity: Identity | undefined } | { readonly failure: Failure };

/** @throws TypeError for an answer that is none of the three */
export function readIdentity(result: IdentifyResult | null): IdentifyOutcome {
  if (result === undefined || result === null) return { identity: undefined };
  if (typeof result !== "object") throw new TypeError("identify() must answer with an object or undefined");
  if (!("reject" in result)) return { identity: result };
  if (result.reject === 401 || result.reject === 403) return { failure: authRejected(result.reject) };
  throw new TypeError("identify() can reject with 401 or 403 only");
}
