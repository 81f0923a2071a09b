/** How fast one target is: means over rolling windows. Asked with `now`. */

import { RollingWindow } from "./window.js";

/** For latency routing. */
export const latencyWindowMs = 1_200_000;
/** For `slaCutoff`. */
export const slaWindowMs = 180_000;
/** Fewer samples than this say nothing. */
export const minSamples = 3;

/** One answer that came to its end. */
export interface LatencySample {
  /** Start of the attempt to the first output, in ms. Undefined for an answer that was not streamed. */
  readonly ttftMs: number | undefined;
  /** How long the output tokens took, in ms: from the first output to the end, for one not streamed the whole attempt. */
  readonly outputMs: number;
  /** Reported by the provider, or an estimate. */
  readonly outputTokens: number;
}

export interface LatencyMeans {
  readonly samples: number;
  /** In ms. Undefined: no streamed answer. */
  readonly ttftMs: number | undefined;
  /** In ms, over all tokens: a long answer says more than a short one. Undefined: no token. */
  readonly timePerOutputTokenMs: number | undefined;
}

const none: LatencyMeans = { samples: 0, ttftMs: undefined, timePerOutputTokenMs: undefined };

export class Latency {
  readonly #begun = new RollingWindow(latencyWindowMs, 1);
  readonly #long = new RollingWindow(latencyWindowMs, 5);
  readonly #short = new RollingWindow(slaWindowMs, 5);

  /** A request begins: the first few are sent to measure the target, all that follow wait for what they tell. */
  begin(now: number): void {
    this.#begun.add(now, [1]);
  }

  add(now: number, { ttftMs, outputMs, outputTokens }: LatencySample): void {
    const values = [1, ttftMs === undefined ? 0 : 1, ttftMs ?? 0, outputTokens, outputMs];
    this.#long.add(now, values);
    this.#short.add(now, values);
  }

  /** Requests that began in the last 20 minutes. */
  begun(now: number): number {
    return this.#begun.sums(now)[0] ?? 0;
  }

  /** Over the last 20 minutes. */
  long(now: number): LatencyMeans {
    return means(this.#long.sums(now));
  }

  /** Over the last 3 minutes. */
  short(now: number): LatencyMeans {
    return means(this.#short.sums(now));
  }
}

function means([samples = 0, streamed = 0, ttft = 0, tokens = 0, output = 0]: readonly number[]): LatencyMeans {
  if (samples === 0) return none;
  return {
    samples,
    ttftMs: streamed === 0 ? undefined : ttft / streamed,
    timePerOutputTokenMs: tokens === 0 ? undefined : output / tokens,
  };
}
