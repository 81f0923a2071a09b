/** The dashboard and the alert rules in examples/monitoring ask for nothing that is not there. */

import { readFileSync } from "node:fs";
import { Registry } from "prom-client";
import { beforeAll, describe, expect, it } from "vitest";
import { channels } from "../../src/observability/channels.js";
import { prometheusObserver } from "../../src/observability/prometheus.js";

const folder = new URL("../../../../examples/monitoring/", import.meta.url);
const read = (name: string): string => readFileSync(new URL(name, folder), "utf8");

interface Panel {
  readonly type: string;
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}
const { panels } = JSON.parse(read("dashboard.json")) as { readonly panels: readonly Panel[] };

/** The expressions of the rules: the file keeps each on its line, or in a block below it. */
const rules = [...read("alerts.yml").matchAll(/^ {8}expr: (?:\|\n((?: {10}.*\n)+)|(.*)\n)/gm)].map(
  (match) => match[1] ?? match[2],
);
const expressions = [...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)), ...rules];

/** Metric → its labels. */
const known = new Map<string, Set<string>>();

beforeAll(() => {
  const register = new Registry();
  prometheusObserver({ register });
  for (const { name } of register.getMetricsAsArray() as unknown as readonly { readonly name: string }[]) {
    const metric = register.getSingleMetric(name) as unknown as {
      readonly labelNames: readonly string[];
      readonly buckets?: readonly number[];
    };
    known.set(name, new Set(metric.labelNames));
    if (metric.constructor.name === "Histogram") known.set(`${name}_bucket`, new Set([...metric.labelNames, "le"]));
  }
});

describe("examples/monitoring", () => {
  it("has a dashboard and rules", () => {
    expect(panels.filter(({ targets }) => targets !== undefined).length).toBeGreaterThan(15);
    expect(rules.length).toBe(read("alerts.yml").match(/- alert:/g)?.length);
  });

  it.each(expressions)("uses metrics and labels that exist: %s", (expression) => {
    const names = expression.match(/first_chunk_\w+/g) ?? [];
    expect(names.length).toBeGreaterThan(0);
    for (const name of names) expect([...known.keys()]).toContain(name);
    const labels = new Set(names.flatMap((name) => [...known.get(name)!]));
    const grouped = [...expression.matchAll(/by \(([^)]*)\)/g)].flatMap((match) => match[1].split(/,\s*/));
    const matched = [...expression.matchAll(/(\w+)(?:=~|!~|!=|=)"/g)].map((match) => match[1]);
    for (const label of [...grouped, ...matched]) expect([...labels]).toContain(label);
  });

  it("shows every metric that there is", () => {
    const shown = expressions.join(" ");
    for (const name of known.keys()) {
      if (!known.has(`${name}_bucket`)) expect(shown).toContain(name);
    }
  });
});

describe("docs/observability.md", () => {
  const text = readFileSync(new URL("../../../../docs/observability.md", import.meta.url), "utf8");

  it("lists every metric with its labels", () => {
    for (const [name, labels] of known) {
      if (name.endsWith("_bucket")) continue;
      const row = new RegExp(`\\| \`${name}\` *\\|[^|]*\\|([^|]*)\\|`).exec(text);
      const listed = [...(row?.[1] ?? "").replace(/\([^)]*\)/g, "").matchAll(/\w+/g)].map(([label]) => label);
      expect([name, listed]).toEqual([name, [...labels]]);
    }
  });

  it("lists every event", () => {
    for (const type of Object.keys(channels)) expect(text).toContain(`| \`${type}\` `);
  });
});
