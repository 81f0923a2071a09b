import { describe, expect, it } from "vitest";
import { mute } from "./scripted-upstream.js";
import { alone, noRetry } from "./fallback/alone.js";

describe("the timeout headers", () => {
  const bad = [
    "abc",
    "1.5",
    "-1",
    "0",
    "",
    "1e3",
    "9999999999",
    "2147483648",
    " 5",
    "5 ",
    "+5",
    "0x10",
    "5, 5",
    "٣",
    ["5"],
    ["5", "6"],
  ];
  const names = ["x-tfy-ttft-timeout-ms", "x-tfy-request-timeout"];

  it.each(names.flatMap((name) => bad.map((value) => [name, value] as const)))(
    "%s: %j is a 400 before any upstream is called",
    async (name, value) => {
      const { run, upstream } = await alone(mute, noRetry, { headers: { [name]: value } });
      expect(run.failed?.status).toBe(400);
      expect(run.failed?.failure.message).toContain(name);
      expect(upstream.calls).toHaveLength(0);
    },
  );

  it.each(bad.map((value) => [value]))("TTFT %j is ignored where the request does not stream", async (value) => {
    const { upstream } = await alone(mute, noRetry, {
      headers: { "x-tfy-ttft-timeout-ms": value },
      body: { stream: false },
    });
    expect(upstream.calls).toHaveLength(1);
  });

  it.each(bad.map((value) => [value]))(
    "request timeout %j is a 400 where the request does not stream",
    async (value) => {
      const { run, upstream } = await alone(mute, noRetry, {
        headers: { "x-tfy-request-timeout": value },
        body: { stream: false },
      });
      expect(run.failed?.status).toBe(400);
      expect(upstream.calls).toHaveLength(0);
    },
  );

  it.each(["1", "2147483647", "007"])("%j is taken", async (value) => {
    const { upstream } = await alone(mute, noRetry, {
      headers: { "x-tfy-ttft-timeout-ms": value, "x-tfy-request-timeout": value },
    });
    expect(upstream.calls).toHaveLength(1);
  });
});
