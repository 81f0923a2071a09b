/** The drill, and a short form of it for the demo. */

import type { DrillPlan } from "./drill.js";

/**
 * A target rests once a tenth of its attempts in the window has failed. With a window of one second and 100 requests a
 * second that is after some ten failures; rests of 3, 6, … s bring it back within one rest of its recovery.
 */
export const fullDrill: DrillPlan = {
  requestsPerSecond: 100,
  durationMs: 20_000,
  downFromMs: 5_000,
  downUntilMs: 12_000,
  cooldown: { windowMs: 1_000, durationMs: 3_000 },
};

export const shortDrill: DrillPlan = {
  requestsPerSecond: 100,
  durationMs: 4_000,
  downFromMs: 1_000,
  downUntilMs: 2_200,
  cooldown: { windowMs: 500, durationMs: 600 },
};
