/** From the events of one request to its one answer. */

import type { FailedEvent, GatewayEvent, ReleasedEvent } from "../events.js";

/**
 * Calls `respond` with the one `released` or `failed` event, and returns then: the body of a released answer goes on by
 * itself, and Koa sends nothing before its middleware has returned. Where the client has left there is no such event.
 *
 * @param left aborts when the client leaves
 * @returns false where there was nobody to answer
 * @throws what `respond` throws, and an Error when the events end without an answer for a client that waits for one
 */
export async function answerWith(
  events: AsyncIterable<GatewayEvent>,
  left: AbortSignal,
  respond: (event: ReleasedEvent | FailedEvent) => void,
): Promise<boolean> {
  const iterator = events[Symbol.asyncIterator]();
  for (;;) {
    const next = await iterator.next();
    if (next.done === true) {
      if (left.aborted) return false;
      throw new Error("The gateway ended a request without an answer");
    }
    const event = next.value;
    if (event.type !== "released" && event.type !== "failed") continue;
    try {
      respond(event);
    } finally {
      // To its end, not `return()`, and not awaited: that may wait for a provider that is silent.
      iterator.next().catch(ignore);
    }
    return true;
  }
}

function ignore(): void {
  // The answer is given; nothing after it can change it.
}
