/**
 * The traps of a streaming proxy, each with the test that stands guard, or the reason why it cannot catch us. The numbers
 * are those of SECURITY.md. Fails when a number is missing, or a test that is named here does not exist.
 */

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { pitfalls } from "./fixtures/pitfalls.js";

const sources = new Map<string, string>();

function sourceOf(file: string): string {
  let source = sources.get(file);
  if (source === undefined)
    sources.set(file, (source = readFileSync(new URL(`../../${file}`, import.meta.url), "utf8")));
  return source;
}

/** Formatting may break a line within a call, never within a text. */
const flat = (text: string): string => text.replace(/\s+/g, " ");

describe("the 93 traps of a streaming proxy", () => {
  it("have each a guard or a reason", () => {
    const numbers = Array.from({ length: 93 }, (_, index) => index + 1);
    expect(Object.keys(pitfalls).map(Number)).toEqual(numbers);
    for (const number of numbers) {
      const { guards = [], reason } = pitfalls[number];
      expect([number, guards.length > 0 || reason !== undefined]).toEqual([number, true]);
    }
  });

  it.each(Object.entries(pitfalls))("pitfall %s: its tests exist", (_number, { guards = [] }) => {
    for (const [file, title] of guards)
      expect(flat(sourceOf(file)).includes(flat(title)), `${file}: ${title}`).toBe(true);
  });

  it("and the promises of SECURITY.md name tests that exist", () => {
    const security = flat(readFileSync(new URL("../../../SECURITY.md", import.meta.url), "utf8"));
    const promises = security.match(/`(?:core|express|koa)\/[^`]+`: "[^"]+"(?:, "[^"]+")*/g) ?? [];
    expect(promises.length).toBeGreaterThan(12);
    for (const promise of promises) {
      const [, file = "", titles = ""] = /^`([^`]+)`: (.*)$/.exec(promise) ?? [];
      for (const [, title = ""] of titles.matchAll(/"([^"]+)"/g)) {
        expect(flat(sourceOf(file)).includes(title), `${file}: ${title}`).toBe(true);
      }
    }
  });

  it("whose reason is that they do not apply stand in SECURITY.md", () => {
    const security = readFileSync(new URL("../../../SECURITY.md", import.meta.url), "utf8");
    for (const { reason } of Object.values(pitfalls)) if (reason !== undefined) expect(security).toContain(reason);
  });
});
