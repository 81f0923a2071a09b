/** What the gateway decided, as told to its observers, as entries of a timeline. */

import type { ObserverEvent } from "@first-chunk/core";
import type { Timeline } from "./timeline.js";

const ms = (value: number): string => `${Math.round(value)} ms`;

export function addGateEntry(timeline: Timeline, event: ObserverEvent): void {
  const who = "gate";
  switch (event.type) {
    case "attempt-start":
      timeline.add(who, `attempt ${event.attempt}${event.retry ? " (again)" : ""} at ${event.target}`);
      break;
    case "attempt-reject": {
      const { status, code } = event.failure;
      timeline.add(who, `REJECTS attempt ${event.attempt} with ${status} ${code}`, "bad");
      break;
    }
    case "release":
      timeline.add(
        who,
        `RELEASES attempt ${event.attempt}: first output after ${ms(event.ttftMs)}; ` +
          `${event.heldBytes} bytes had been held for ${ms(event.holdMs)}`,
        "good",
      );
      break;
    case "stream-end":
      timeline.add(who, `saw ${event.bytes} bytes pass, the stream is ${event.complete ? "complete" : "not complete"}`);
      break;
    case "stream-fail":
      timeline.add(who, `the stream FAILS after release: ${event.failure.code}`, "bad");
      break;
    case "request-end":
      if (event.outcome === "failure") timeline.add(who, `no target is left: answers ${event.status}`, "bad");
      break;
    default:
  }
}
