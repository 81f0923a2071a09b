/** What comes of reading a request body, and who is told. */

import type { Failure } from "../errors.js";
import type { GatewayRequest } from "../request.js";

/** Who waits for the body of a request. */
export interface BodyReceiver {
  /** Once. Must not throw. */
  onBody(outcome: BodyOutcome): void;
}

export type BodyOutcome = { readonly body: GatewayRequest["body"] } | { readonly failure: Failure };
