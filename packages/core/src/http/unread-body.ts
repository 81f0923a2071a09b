/** Answers to requests whose body is still coming. */

import type { IncomingMessage } from "node:http";
import type { Clock } from "../clock.js";

/** How long the rest of a refused body is read and dropped, in ms. */
const lingerMs = 5_000;

/**
 * Whether an answer now must close the connection. HTTP/2 needs no such thing: there the stream alone is closed.
 */
export function hasUnreadBody(req: IncomingMessage): boolean {
  return req.httpVersionMajor < 2 && !req.complete;
}

/**
 * Reads and drops what is left of the body, up to a limit of time. A connection that is closed with unread bytes is
 * reset, and a reset may take the answer from the client before it has read it. So the answer is written, this is
 * awaited, and then the response is ended. Never rejects.
 */
export function drainUnreadBody(req: IncomingMessage, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    if (req.complete || req.destroyed) return resolve();
    const done = (): void => {
      timer.cancel();
      req.off("end", done).off("close", done).off("error", done);
      resolve();
    };
    const timer = clock.setTimer(clock.now() + lingerMs, done);
    req.on("end", done).on("close", done).on("error", done);
    req.resume();
  });
}
