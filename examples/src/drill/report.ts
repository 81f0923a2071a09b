/** What a drill showed: a timeline, and whether it went as it should. */

import type { DrillResult, Moment } from "./drill.js";

export interface DrillVerdict {
  readonly ok: boolean;
  readonly lines: readonly string[];
}

const barWidth = 24;

/** One line for each slot of time: who answered, and what happened. */
export function drillTimeline({ plan, moments }: DrillResult): string[] {
  const slotMs = Math.max(plan.durationMs / 40, 200);
  const perSlot = (plan.requestsPerSecond * slotMs) / 1000;
  const lines = [`${"time".padStart(8)}  ${"first".padEnd(barWidth)}  second  third  failed attempts`];
  for (let from = 0; from < plan.durationMs; from += slotMs) {
    const slot = moments.filter(({ atMs }) => atMs >= from && atMs < from + slotMs);
    const answered = (who: string): number => count(slot, "answered", who);
    const bar = "#".repeat(Math.min(barWidth, Math.round((answered("first") / perSlot) * barWidth)));
    const numbers = `${String(answered("second")).padStart(6)}  ${String(answered("third")).padStart(5)}  ${String(count(slot, "attempt-failure")).padStart(6)}`;
    const failures = count(slot, "client-failure");
    const seen = failures === 0 ? [] : [`${failures} failures seen by clients`];
    const notes = [...planned(plan, from, slotMs), ...slot.flatMap(note), ...seen];
    lines.push(
      `${(from / 1000).toFixed(2).padStart(6)} s  ${bar.padEnd(barWidth)}  ${numbers}  ${notes.join(", ")}`.trimEnd(),
    );
  }
  return lines;
}

function count(moments: readonly Moment[], type: Moment["type"], who?: string): number {
  return moments.filter((moment) => moment.type === type && (who === undefined || moment.who === who)).length;
}

function planned({ downFromMs, downUntilMs }: DrillResult["plan"], from: number, slotMs: number): string[] {
  const within = (at: number): boolean => at >= from && at < from + slotMs;
  return [...(within(downFromMs) ? ["first is overloaded"] : []), ...(within(downUntilMs) ? ["first has healed"] : [])];
}

function note({ type, who }: Moment): string[] {
  if (type === "rest") return [`${who} rests`];
  return type === "back" ? [`${who} is back`] : [];
}

export function drillVerdict({ plan, requests, moments, restsMs }: DrillResult): DrillVerdict {
  const failures = count(moments, "client-failure");
  const answered = count(moments, "answered");
  const rest = moments.find(({ type }) => type === "rest");
  const back = moments.findLast(({ type }) => type === "back");
  const before = moments.filter(({ type, atMs }) => type === "attempt-failure" && atMs <= (rest?.atMs ?? 0)).length;
  const backMs = (back?.atMs ?? Infinity) - plan.downUntilMs;
  const longestMs = Math.max(...restsMs);
  const after = moments.filter(({ type, atMs }) => type === "answered" && atMs > (back?.atMs ?? Infinity) + 100);
  const atFirst = after.filter(({ who }) => who === "first").length / Math.max(after.length, 1);
  // A tenth of the attempts in the window, and what a busy machine had under way by then.
  const few = (plan.requestsPerSecond * plan.cooldown.windowMs) / 10_000 + plan.requestsPerSecond / 4;
  const isBack = backMs <= longestMs + 1_000 && atFirst > 0.9;
  const ok = failures === 0 && answered === requests && before <= few && isBack;
  return {
    ok,
    lines: [
      `${answered} of ${requests} requests answered, ${failures} failures seen by clients${reasons(moments)}`,
      `traffic moved after ${before} failed attempts, ${((rest?.atMs ?? Infinity) - plan.downFromMs).toFixed(0)} ms into the outage`,
      `traffic was back ${backMs.toFixed(0)} ms after the first provider had healed; its longest rest was ${(longestMs / 1000).toFixed(1)} s`,
      `from then on ${(100 * atFirst).toFixed(1)} % were answered by the first provider`,
    ],
  };
}

function reasons(moments: readonly Moment[]): string {
  const seen = new Set(moments.filter(({ type }) => type === "client-failure").map(({ who }) => who));
  return seen.size === 0 ? "" : `: ${[...seen].join(", ")}`;
}
