/** What a client that leaves must not leave behind. */

import { afterEach, beforeEach, expect } from "vitest";
import { requestEnds, type Stage } from "./serving.js";

/** Fails each test of the file in which a rejection is handled by nobody. */
export function watchRejections(): void {
  let unhandled: unknown[] = [];
  const note = (reason: unknown): void => void unhandled.push(reason);
  beforeEach(() => {
    unhandled = [];
    process.on("unhandledRejection", note);
  });
  afterEach(() => {
    process.off("unhandledRejection", note);
    if (unhandled.length > 0) throw new AggregateError(unhandled, "unhandled rejections");
  });
}

export function expectClientAbort(scene: Stage, phase: "waiting" | "streaming"): void {
  expect(scene.observed.filter((event) => event.type === "client-abort")).toMatchObject([
    { phase, failure: { status: 499 } },
  ]);
  expect(requestEnds(scene)).toMatchObject([
    { outcome: "client-abort", status: 499, released: phase === "streaming", failure: { status: 499 } },
  ]);
  expect(scene.observed.filter((event) => event.type === "stream-fail")).toEqual([]);
}
