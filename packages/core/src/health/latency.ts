/** How fast one target is: means over rolling windows. Asked with `now`. */

import { RollingWindow } from "./window.js";

/** For latency routing. */
export const latencyWindowMs = 1_200_000;
/** For `slaCutoff`. */
export const slaWindowMs = 180_000;
/** Fewer samples than this say nothing. */
export const minSamples = 3;

export interface LatencySample {
  /** Start of the attempt to the first output, in ms. */
  readonly ttftMs: number;
  /** First output to the end, over the output tokens, in ms. */
  readonly timePerOutputTokenMs: number;
}

export interface LatencyMeans {
  readonly samples: number;
  readonly ttftMs: number;
  readonly timePerOutputTokenMs: number;
}

export class Latency {
  readonly #long = new RollingWindow(latencyWindowMs, 3);
  readonly #short = new RollingWindow(slaWindowMs, 3);

  add(now: number, { ttftMs, timePerOutputTokenMs }: LatencySample): void {
    this.#long.add(now, [1, ttftMs, timePerOutputTokenMs]);
    this.#short.add(now, [1, ttftMs, timePerOutputTokenMs]);
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

function means([samples = 0, ttft = 0, perToken = 0]: readonly number[]): LatencyMeans {
  return samples === 0
    ? { samples: 0, ttftMs: 0, timePerOutputTokenMs: 0 }
    : { samples, ttftMs: ttft / samples, timePerOutputTokenMs: perToken / samples };
}
