/** One request of an official client through one gateway, with everything that happens meanwhile. */

import { setTimeout } from "node:timers/promises";
import type { ObserverEvent } from "@first-chunk/core";
import { clients } from "./clients.js";
import type { Api } from "./clients.js";
import { addGateEntry } from "./gate-entries.js";
import type { RunningGateway } from "./gateways.js";
import { failedWith } from "./outcome.js";
import type { Outcome } from "./outcome.js";
import { Timeline } from "./timeline.js";

export interface RunOptions {
  readonly api: Api;
  readonly model: string;
  readonly ttftTimeoutMs?: number | undefined;
  readonly maxRetries?: number | undefined;
  /** How long the client waits for an answer to begin, in ms. */
  readonly timeoutMs: number;
}

export interface Run {
  readonly timeline: Timeline;
  readonly outcome: Outcome;
  /** Requests that the gateway saw. */
  readonly requests: number;
  /** From the client's request to the gate's last decision, in ms. */
  readonly decidedMs: number;
}

export async function run(gateway: RunningGateway, options: RunOptions): Promise<Run> {
  const timeline = new Timeline();
  const requests = watch(gateway, timeline);
  const { path } = clients[options.api];
  timeline.add("client", `POST ${path}, model "${options.model}"${ttftWords(options.ttftTimeoutMs)}`);
  const outcome = await receive(gateway.url, options, timeline);
  // The last events come just after the client has its answer; a defect must not hang the demo.
  await Promise.race([requests.allEnded(), setTimeout(2000, undefined, { ref: false })]);
  return { timeline, outcome, requests: requests.count(), decidedMs: requests.decidedAt() - timeline.startedAt };
}

function ttftWords(ttftTimeoutMs: number | undefined): string {
  return ttftTimeoutMs === undefined ? "" : `, x-tfy-ttft-timeout-ms: ${ttftTimeoutMs}`;
}

interface Watch {
  allEnded(): Promise<void>;
  count(): number;
  decidedAt(): number;
}

function watch(gateway: RunningGateway, timeline: Timeline): Watch {
  const seen = { started: 0, ended: 0, decidedAt: timeline.startedAt };
  let wake = (): void => {};
  gateway.observe((event: ObserverEvent) => {
    addGateEntry(timeline, event);
    if (event.type === "request-start") seen.started += 1;
    if (event.type === "request-end") seen.ended += 1;
    if (event.type === "attempt-reject" || event.type === "release") seen.decidedAt = performance.now();
    wake();
  });
  return {
    count: () => seen.started,
    decidedAt: () => seen.decidedAt,
    allEnded: async () => {
      while (seen.ended < Math.max(seen.started, 1)) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}

async function receive(url: string, options: RunOptions, timeline: Timeline): Promise<Outcome> {
  const { api, model, ttftTimeoutMs, timeoutMs, maxRetries = 0 } = options;
  let attempts = 0;
  let text = "";
  let events = 0;
  try {
    await clients[api].run({
      url,
      model,
      maxRetries,
      timeoutMs,
      headers: ttftTimeoutMs === undefined ? {} : { "x-tfy-ttft-timeout-ms": String(ttftTimeoutMs) },
      onHead: (status, headers) => {
        attempts = Number(headers.get("x-tfy-attempts"));
        timeline.add("client", `receives ${status}, answered by ${headers.get("x-tfy-resolved-model") ?? "a target"}`);
      },
      onEvent: (name, part) => {
        events += 1;
        text += part;
        if (events === 1) timeline.add("client", `receives its first event, ${name}`);
      },
    });
  } catch (error) {
    const { message, ...failed } = failedWith(error);
    const repeat = (error as { headers?: Headers }).headers?.get("x-should-retry");
    timeline.add(
      "client",
      `throws ${failed.error}: ${message}${repeat === "false" ? " (told not to retry)" : ""}`,
      "bad",
    );
    return failed;
  }
  timeline.add("client", `has the whole answer: ${events} events, "${text}"`, "good");
  return { kind: "answer", text, attempts };
}
