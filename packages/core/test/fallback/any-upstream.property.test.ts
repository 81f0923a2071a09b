import fc from "fast-check";
import { expect, it } from "vitest";
import {
  chatErrorAfterPreamble,
  chatErrorAfterText,
  chatHealthy,
  chatTruncatedAfterText,
} from "../../src/testing/chat-streams.js";
import { answer, broken, connected, data, end, head, type Script, type Step } from "../scripted-upstream.js";
import { expectOver, request, requestEnds, Run, stage, story } from "./serving.js";

const pause = fc.constantFrom(0, 0, 0, 1, 40, 6_000, 301_000);

/** A stream, cut into chunks anywhere, at any speed, that stops or ends anywhere. */
const anyStream = fc
  .record({
    text: fc.constantFrom(
      chatHealthy().join(""),
      chatErrorAfterPreamble().join(""),
      chatErrorAfterText().join(""),
      chatTruncatedAfterText().join(""),
      ": comment\n\n",
      "<html>",
      "",
    ),
    cuts: fc.array(fc.nat(2_000), { maxLength: 6 }),
    waits: fc.array(pause, { minLength: 10, maxLength: 10 }),
    last: fc.constantFrom("end", "broken", "silence"),
    keep: fc.nat(9),
    inSend: fc.boolean(),
  })
  .map(({ text, cuts, waits, last, keep, inSend }): Script => {
    const places = [0, ...cuts.filter((cut) => cut < text.length).toSorted((a, b) => a - b), text.length];
    const chunks = places.slice(1).map((place, index) => text.slice(places[index], place));
    const ending: readonly Step[] = last === "silence" ? [] : [last === "end" ? end() : broken()];
    const steps = [
      connected(),
      head(),
      ...chunks.filter((chunk) => chunk !== "").map((chunk) => data(chunk)),
      ...ending,
    ];
    const timed = steps.map((step, index) => ({ ...step, after: waits[index] ?? 0 }));
    return { steps: keep === 0 ? timed.slice(0, 2) : timed, inSend };
  });
const anyRefusal = fc
  .tuple(
    fc.constantFrom(302, 400, 401, 404, 408, 429, 500, 503, 529),
    fc.constantFrom({}, { "retry-after": "2" }, { "x-should-retry": "false" }),
  )
  .map(([status, headers]) => answer(status, { error: { message: "no" } }, headers));
const anyScript = fc.oneof({ weight: 3, arbitrary: anyStream }, { weight: 1, arbitrary: anyRefusal });
const anyTarget = fc.record({
  scripts: fc.array(anyScript, { minLength: 1, maxLength: 3 }),
  attempts: fc.option(fc.nat(2), { nil: undefined }),
  fallbackCandidate: fc.boolean(),
});
const anyClient = fc.record({
  leavesAfter: fc.option(fc.constantFrom(0, 1, 20, 5_500, 50_500, 302_000), { nil: undefined }),
  headers: fc.constantFrom({}, { "x-tfy-ttft-timeout-ms": "300" }, { "x-tfy-request-timeout": "7000" }),
  totalTimeoutMs: fc.constantFrom(undefined, 100, 20_000),
  stream: fc.boolean(),
});

it("whatever the providers do, a request has one answer and one end, within its budget, and leaves nothing behind", async () => {
  const property = fc.asyncProperty(
    fc.array(anyTarget, { minLength: 1, maxLength: 3 }),
    anyClient,
    async (targets, client) => {
      const names = ["a", "b", "c"].slice(0, targets.length);
      const byName = <T>(of: (target: (typeof targets)[number]) => T) =>
        Object.fromEntries(names.map((name, index) => [name, of(targets[index])]));
      const scene = stage({
        targets: byName(({ scripts }) => scripts),
        targetConfig: byName(({ attempts, fallbackCandidate }) => ({
          fallbackCandidate,
          ...(attempts !== undefined && { retry: { attempts } }),
        })),
        config: client.totalTimeoutMs === undefined ? {} : { timeouts: { totalTimeoutMs: client.totalTimeoutMs } },
      });
      const gone = new AbortController();
      const run = new Run(
        scene.gateway,
        request({ headers: client.headers, body: { stream: client.stream }, signal: gone.signal }),
        true,
      );
      if (client.leavesAfter !== undefined) {
        await scene.clock.advance(client.leavesAfter);
        gone.abort();
      }
      await scene.clock.advance(60_000_000);
      await run.done;

      expectOver(scene);
      const answers = run.events.filter((event) => event.type === "released" || event.type === "failed");
      const [last] = requestEnds(scene);
      expect(answers.length).toBe(last.outcome === "client-abort" && !last.released ? 0 : 1);
      // Of a client that leaves after an error event the failure is recorded, and it gets no end.
      expect(run.ends).toBeLessThanOrEqual(run.released === undefined || last.outcome === "client-abort" ? 0 : 1);
      if (last.outcome === "success" || (client.leavesAfter === undefined && run.released !== undefined))
        expect(run.ends).toBe(1);
      for (const [index, name] of names.entries()) {
        expect(scene.upstream.to(`http://${name}.test`).length).toBeLessThanOrEqual(1 + (targets[index].attempts ?? 2));
        if (index > 0 && !targets[index].fallbackCandidate)
          expect(scene.upstream.to(`http://${name}.test`)).toHaveLength(0);
      }
      const told = story(scene);
      expect(told.filter((type) => type === "attempt-start")).toHaveLength(last.attempts);
      expect(told.filter((type) => type === "attempt-reject" || type === "release")).toHaveLength(last.attempts);
      if (last.outcome === "success") expect(told).toContain("stream-end");
      if (told.includes("stream-fail")) expect(last.outcome).toBe("failure");
    },
  );
  await fc.assert(property, { numRuns: 100 });
}, 60_000);
