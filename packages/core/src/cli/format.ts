/** An explanation as text for a terminal. */

import type { Capture } from "./capture.js";
import type { ExplainedFrame, Explanation } from "./explain.js";

/** Longest event name, and longest piece of data, in characters. */
const maxName = 40;
const maxData = 60;

/** How the protocol was found. */
export type ProtocolFrom = "option" | "content" | "default";

const sources: Readonly<Record<ProtocolFrom, string>> = {
  option: "",
  content: " (told by its content; --protocol decides otherwise)",
  default: " (assumed: its content does not tell; --protocol decides otherwise)",
};

export function formatExplanation({ head }: Capture, explanation: Explanation, protocolFrom: ProtocolFrom): string {
  const { protocol, bytes, frames, outcome } = explanation;
  const type = head?.headers.get("content-type");
  const lines = [
    `protocol  ${protocol}${sources[protocolFrom]}`,
    ...(head === undefined ? [] : [`answer    HTTP ${head.status}${type === undefined ? "" : `, ${printable(type)}`}`]),
    `body      ${bytes} bytes, ${frames.length} frames`,
    "",
    ...table(frames),
    `outcome   ${outcomeText(explanation)}`,
  ];
  if (outcome.message !== undefined) lines.push(`message   ${printable(outcome.message)}`);
  return `${lines.join("\n")}\n`;
}

function outcomeText({ outcome }: Explanation): string {
  const { result, frame, reason, status, code, retryable } = outcome;
  const where = frame === undefined ? "at the end" : `at frame ${frame}`;
  const failure = `${printable(String(code))}, ${retryable === true ? "retryable" : "not retryable"}`;
  if (result === "rejected")
    return `rejected ${reason.startsWith("HTTP") ? "for its status" : where}: ${status} ${failure}`;
  if (result === "broken") return `released ${where} (${reason}), then broken: ${failure}`;
  return `released ${where} (${reason})`;
}

function table(frames: readonly ExplainedFrame[]): string[] {
  if (frames.length === 0) return [];
  const rows = frames.map(({ number, start, end, kind, event, verdict, action, data }) => [
    String(number),
    `${start}-${end}`,
    event === "" ? kind : cut(printable(event), maxName),
    printable(verdict),
    action,
    cut(printable(data), maxData),
  ]);
  const all = [["#", "bytes", "frame", "verdict", "gate", "data"], ...rows];
  const widths = all[0]?.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0))) ?? [];
  return [
    ...all.map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    ),
    "",
  ];
}

function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

/** A capture may hold anything, also what a terminal would obey. */
export function printable(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => {
    if (character === "\n") return "\\n";
    return character === "\r" ? "\\r" : `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
  });
}
