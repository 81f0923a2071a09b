import { describe, expect, it } from "vitest";
import { data, end, stream } from "../scripted-upstream.js";
import { expectOver, send, stage } from "./serving.js";

const role = 'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n';
const stop = 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n';

describe("a stream that is released only when it ends", () => {
  it("ends the answer at once where it stops without a sentinel", async () => {
    const scene = stage({ targets: { a: stream([role, stop], end()) } });
    const run = send(scene);
    await scene.clock.advance(0);
    expect(run.text).toBe(role + stop);
    expect(run.ends).toBe(1);
    expectOver(scene);
  });

  it("ends the answer at once where it ends within its first event, under overload validation", async () => {
    const body = "<html>busy</html>";
    const config = { gate: { inBandErrors: false } };
    const scene = stage({
      targets: { a: { steps: [...stream([]).steps, data(body), end()] } },
      type: "anthropic",
      config,
    });
    const run = send(scene, { api: "messages" });
    await scene.clock.advance(0);
    expect(run.text).toBe(body);
    expect(run.ends).toBe(1);
    expectOver(scene);
  });
});
