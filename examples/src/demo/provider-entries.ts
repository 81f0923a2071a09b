/** What a scripted provider did, as entries of a timeline. */

import { setTimeout } from "node:timers/promises";
import type { PlayedStep, ReceivedRequest, ScriptedProvider } from "@first-chunk/core/testing";
import { sentence, wordOf } from "./stream-words.js";
import type { Word } from "./stream-words.js";
import type { Timeline } from "./timeline.js";

/** Adds what the provider did from its request number `from` on. */
export async function addProviderEntries(
  timeline: Timeline,
  who: string,
  provider: ScriptedProvider,
  from: number,
): Promise<void> {
  const decisions = timeline.entries.map(({ at }) => at);
  for (const request of provider.requests.slice(from)) {
    addSteps(timeline, who, request, decisions);
    // A provider that still holds the connection waits for the gateway to close it.
    if (request.played.at(-1)?.step.step !== "hold") continue;
    const closed = await Promise.race([request.closed, setTimeout(2000, undefined, { ref: false })]);
    if (closed === undefined) timeline.add(who, "still has the connection of a request that is over", "bad");
    else if (closed.byClient) timeline.add(who, "sees its connection closed by the gateway", "dim", closed.at);
  }
}

/** Events in a row are one entry, unless something else happened between them. */
function addSteps(timeline: Timeline, who: string, request: ReceivedRequest, decisions: readonly number[]): void {
  let group: { words: Word[]; at: number } | undefined;
  const flush = (): void => {
    if (group !== undefined) timeline.add(who, `sends ${sentence(group.words)}`, "plain", group.at);
    group = undefined;
  };
  for (const { at, step } of request.played) {
    if (step.step === "wait") continue;
    const since = group?.at ?? at;
    if (step.step !== "chunk" || decisions.some((decision) => decision > since && decision < at)) flush();
    if (step.step === "chunk") {
      group ??= { words: [], at };
      group.words.push(wordOf(String(step.data)));
    } else timeline.add(who, phrase(step), "plain", at);
  }
  flush();
}

function phrase(step: PlayedStep["step"]): string {
  switch (step.step) {
    case "head":
      return `answers ${step.status} ${String(step.headers["content-type"] ?? "")}`.trimEnd();
    case "hold":
      return "goes silent";
    case "end":
      return "ends the stream";
    default:
      return step.step;
  }
}
