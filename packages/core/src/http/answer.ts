/** From one request to its one answer. */

import type { FailedEvent, GatewayEvent, ReleasedEvent } from "../events.js";
import type { ClientSignal, GatewayRequest } from "../request.js";
import type { ServedGateway } from "./served-gateway.js";

/**
 * The one `released` or `failed` event of a request; undefined where the client has left, so that there is nobody to
 * answer. The body of a released answer goes on by itself.
 *
 * @param route what `gateway.match` gave for it
 * @throws an Error when the events end without an answer for a client that waits for one
 */
export function answerTo(
  gateway: ServedGateway,
  request: GatewayRequest,
  route: object,
): Promise<ReleasedEvent | FailedEvent | undefined> {
  return gateway.answer === undefined ? lastEvent(gateway.handle(request), request.signal) : gateway.answer(request, route);
}

async function lastEvent(
  events: AsyncIterable<GatewayEvent>,
  signal: ClientSignal,
): Promise<ReleasedEvent | FailedEvent | undefined> {
  const iterator = events[Symbol.asyncIterator]();
  for (;;) {
    const next = await iterator.next();
    if (next.done === true) {
      if (signal.aborted) return undefined;
      throw new Error("The gateway ended a request without an answer");
    }
    const event = next.value;
    if (event.type !== "released" && event.type !== "failed") continue;
    // To its end, not `return()`, and not awaited: that may wait for a provider that is silent.
    iterator.next().catch(ignore);
    return event;
  }
}

function ignore(): void {
  // The answer is given; nothing after it can change it.
}
