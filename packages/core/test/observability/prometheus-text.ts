/** Reads the Prometheus text format, version 0.0.4. Throws on what is not in it. */

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Family {
  readonly type: string;
  readonly help: string;
  readonly samples: Sample[];
}

const metricLine = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: \d+)?$/;
const label = /([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y;

export function parseMetrics(text: string): Map<string, Family> {
  if (text !== "" && !text.endsWith("\n")) throw new Error("the last line is not ended");
  const families = new Map<string, Family>();
  const helps = new Map<string, string>();
  for (const line of text.split("\n")) {
    if (line === "") continue;
    const comment = /^# (HELP|TYPE) ([a-zA-Z_:][\w:]*) (.*)$/.exec(line);
    if (comment?.[1] === "HELP") helps.set(comment[2], comment[3]);
    else if (comment !== null) {
      if (families.has(comment[2])) throw new Error(`${comment[2]} has two types`);
      families.set(comment[2], { type: comment[3], help: helps.get(comment[2]) ?? "", samples: [] });
    } else familyOf(families, line).samples.push(parseSample(line));
  }
  return families;
}

function familyOf(families: Map<string, Family>, line: string): Family {
  const { name } = parseSample(line);
  const family = families.get(name) ?? families.get(name.replace(/_(?:bucket|sum|count)$/, ""));
  if (family === undefined) throw new Error(`a sample without a type: ${line}`);
  return family;
}

function parseSample(line: string): Sample {
  const match = metricLine.exec(line);
  if (match === null) throw new Error(`not a sample: ${line}`);
  const value = match[3] === "+Inf" ? Infinity : Number(match[3]);
  if (Number.isNaN(value) && match[3] !== "NaN") throw new Error(`not a value: ${line}`);
  return { name: match[1], labels: parseLabels(match[2] ?? ""), value };
}

function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  label.lastIndex = 0;
  while (label.lastIndex < text.length) {
    const match = label.exec(text);
    if (match === null) throw new Error(`not a list of labels: ${text}`);
    labels[match[1]] = match[2];
  }
  return labels;
}
