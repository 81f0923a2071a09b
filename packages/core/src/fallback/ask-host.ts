/** Questions to the host's own code (a key, a signature), which may be slow, throw, or never answer. */

import type { Clock, Timer } from "../clock.js";
import type { ClientSignal } from "../request.js";

export interface AskLimits {
  readonly clock: Clock;
  /** In ms. */
  readonly timeoutMs: number;
  /** Aborts when nobody waits for the answer any more. */
  readonly signal: ClientSignal;
}

/** Rejects with what `ask` throws, or when the limit is reached. An answer that comes later is dropped. */
export async function askHost<T>(ask: () => T | Promise<T>, { clock, timeoutMs, signal }: AskLimits): Promise<T> {
  let timer: Timer | undefined;
  let onAbort: (() => void) | undefined;
  try {
    return await new Promise<T>((resolve, reject) => {
      timer = clock.setTimer(clock.now() + timeoutMs, () => reject(new Error(`no answer within ${timeoutMs} ms`)));
      onAbort = () => reject(new Error("the client left"));
      signal.addEventListener("abort", onAbort);
      Promise.resolve(ask()).then(resolve, reject);
    });
  } finally {
    timer?.cancel();
    if (onAbort !== undefined) signal.removeEventListener("abort", onAbort);
  }
}
