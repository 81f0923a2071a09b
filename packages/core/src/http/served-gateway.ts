/** What an adapter needs of a gateway. `Gateway` is one; a test may script its own. */

import type { Failure } from "../errors.js";
import type { FailedEvent, GatewayEvent, ReleasedEvent } from "../events.js";
import type { GatewayRequest } from "../request.js";

export interface ServedGateway {
  /**
   * Which API a request is for, or undefined: then it is not the gateway's. Looks at method and path only.
   *
   * @param mounted below a mount path: the routes without `/v1` match too
   */
  match(method: string, url: string, mounted: boolean): object | undefined;
  /** Yields exactly one `released` or `failed`, and nothing after it. */
  handle(request: GatewayRequest): AsyncIterable<GatewayEvent>;
  /**
   * The last event of `handle` alone, at less cost; undefined where the client has left. Default: that of `handle`.
   *
   * @param route what `match` gave for it
   */
  answer?(request: GatewayRequest, route?: object): Promise<ReleasedEvent | FailedEvent | undefined>;
  /**
   * The answer to a request that the adapter itself refuses, in the client's protocol.
   *
   * @param route what `match` gave for it
   */
  refuse(route: object, failure: Failure): FailedEvent;
  /** Why a request that comes now would be refused, whatever it holds. Asked before its body is read. Default: never. */
  refusal?(): Failure | undefined;
  readonly limits: { readonly maxRequestBytes: number };
  readonly timeouts: { readonly writeStallTimeoutMs: number };
}
