import { describe, expect, it } from "vitest";
import { retryHintMs } from "../../src/gate/retry-hint.js";

describe("wording", () => {
  it.each([
    ["Please try again in 1.5s.", 1500],
    ["Please try again in 450ms. Visit", 450],
    ["Please try again in 1m30s.", 90_000],
    ["Please try again in 6m0s.", 360_000],
    ["Please try again in 1h2m3.5s.", 3_723_500],
    ["Please try again in 20 seconds", 20_000],
    ["Try again in 1 minute and 5 seconds.", 65_000],
    ["Please retry after 26 seconds.", 26_000],
    ["Please retry in 53.607s.", 53_607],
    ["try again in 1.1s", 1100],
    ["try again in 2 days", 172_800_000],
  ])("%s", (message, expected) => {
    expect(retryHintMs({}, undefined, message)).toBe(expected);
  });

  it.each(["Please try again.", "try again in a moment", "Limit 30s", "try again in 5 apples", "try again in 0s"])(
    "names no time: %s",
    (message) => {
      expect(retryHintMs({}, undefined, message)).toBeUndefined();
    },
  );
});

describe("fields", () => {
  it.each<[string, object, number]>([
    ["seconds", { retry_after: 2 }, 2000],
    ["seconds as text", { retry_after_seconds: "1.5" }, 1500],
    ["ms", { retry_after_ms: 250 }, 250],
    ["a quota's reset", { type: "usage_limit_reached", resets_in_seconds: 3600 }, 3_600_000],
    ["metadata", { metadata: { retry_after_seconds: 7 } }, 7000],
    ["Google's details", { details: [{ "@type": "x" }, { "@type": "RetryInfo", retryDelay: "12s" }] }, 12_000],
    ["a fraction", { details: [{ retryDelay: "0.5s" }] }, 500],
    ["a Duration object", { details: [{ retryDelay: { seconds: "3", nanos: 500_000_000 } }] }, 3500],
  ])("reads %s", (_, error, expected) => {
    expect(retryHintMs(error, undefined, "try again in 99s")).toBe(expected);
  });

  it("reads the carrier after the error", () => {
    expect(retryHintMs({ message: "x" }, { retry_after: 4 }, undefined)).toBe(4000);
  });

  it.each([-1, 0, 1e300, NaN, "soon", "2026-01-01", null, {}])("ignores %s", (retry_after) => {
    expect(retryHintMs({ retry_after }, undefined, undefined)).toBeUndefined();
  });
});
