/** Printing for people: 100 columns, colours on a terminal only. */

import { styleText } from "node:util";
import { shortOutcome } from "./outcome.js";
import type { Outcome } from "./outcome.js";
import type { Timeline, Tone } from "./timeline.js";

type Style = Parameters<typeof styleText>[0];

const columns = 100;
const timeWidth = 9;
const whoWidth = 9;

// https://no-color.org: set and not empty switches colours off, whatever the value.
const coloured = process.stdout.isTTY && (process.env["NO_COLOR"] ?? "") === "";

function paint(style: Style, text: string): string {
  return coloured ? styleText(style, text) : text;
}

const styles: Readonly<Record<Tone, Style | undefined>> = { plain: undefined, good: "green", bad: "red", dim: "dim" };

export function print(line: string = ""): void {
  process.stdout.write(`${line}\n`);
}

export function printHeading(text: string): void {
  print(paint("bold", text));
}

export function printText(text: string, indent: number = 0): void {
  for (const line of wrap(text, columns - indent)) print(" ".repeat(indent) + line);
}

export function printTimeline(timeline: Timeline): void {
  for (const { at, who, text, tone } of timeline.entries) {
    const time = `${Math.round(at - timeline.startedAt)} ms`.padStart(timeWidth);
    const [first = "", ...others] = wrap(text, columns - timeWidth - whoWidth - 3);
    const style = styles[tone];
    const styled = (line: string): string => (style === undefined ? line : paint(style, line));
    print(`${paint("dim", time)}  ${paint("cyan", who.padEnd(whoWidth))} ${styled(first)}`);
    for (const line of others) print(`${" ".repeat(timeWidth + whoWidth + 3)}${styled(line)}`);
  }
}

export interface Row {
  readonly title: string;
  readonly api: string;
  /** One for each gateway. */
  readonly results: readonly { readonly outcome: Outcome; readonly decidedMs: number }[];
  readonly ok: boolean;
}

const widths = [3, 39, 17, 18, 18] as const;

export function printTable(gateways: readonly string[], rows: readonly Row[]): void {
  const cells = (values: readonly string[]): string =>
    values.map((value, index) => value.padEnd(widths[index] ?? 0)).join("");
  printHeading(cells(["", "case", "API", ...gateways]));
  for (const [index, { title, api, results, ok }] of rows.entries()) {
    const words = results.map(({ outcome, decidedMs }) => `${shortOutcome(outcome)}, ${Math.round(decidedMs)} ms`);
    print(`${cells([`${index + 1}`, title, api, ...words])}${verdict(ok)}`);
  }
  print();
  printText(
    "attempt n: the client received the whole text of that attempt; error n: its SDK threw a typed error with that " +
      "status. The time is that of the gate's last decision, from the client's request on.",
  );
}

export function verdict(ok: boolean): string {
  return ok ? paint("green", "ok") : paint("red", "NO");
}

/** Breaks at spaces; a word that is longer than the line is left whole. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = `${last} ${word}`;
  }
  return lines;
}
