/** `explain [FILE] [--protocol NAME] [--json]`, without the process around it. */

import { parseArgs } from "node:util";
import type { ProtocolName } from "../gate/protocols/protocol.js";
import { protocols } from "../gate/protocols/protocols.js";
import { readCapture } from "./capture.js";
import { explain } from "./explain.js";
import { formatExplanation, printable } from "./format.js";
import { guessProtocol } from "./guess-protocol.js";

export interface CommandResult {
  /** 0: explained, whatever came out. 1: there is nothing to explain. 2: the command line is wrong. */
  readonly exitCode: 0 | 1 | 2;
  readonly stdout: string;
  readonly stderr: string;
}

/** @param path undefined: standard input. Rejects with the system's error. */
export type ReadInput = (path: string | undefined) => Promise<Uint8Array>;

const names = [...protocols.keys()].join(", ");

const usage = `Usage: explain [FILE] [--protocol NAME] [--json]

Shows what the gate makes of a captured answer: a response body, or the output of \`curl -i\`.
Without FILE, or with -, it reads standard input.

  --protocol NAME  ${names}
                   (default: told by the content)
  --json           prints one JSON object
  --help           prints this
`;

export async function runCommand(args: readonly string[], read: ReadInput): Promise<CommandResult> {
  const parsed = parse(args);
  if (typeof parsed === "string") return failed(2, `${parsed}\n\n${usage}`);
  const { path, name, json, help } = parsed;
  if (help) return { exitCode: 0, stdout: usage, stderr: "" };
  const source = path ?? "standard input";
  let bytes: Uint8Array;
  try {
    bytes = await read(path);
  } catch (error) {
    return failed(
      1,
      `Cannot read ${printable(source)}: ${printable(error instanceof Error ? error.message : String(error))}\n`,
    );
  }
  if (bytes.length === 0)
    return failed(1, `${printable(source)} is empty. Capture an answer with \`curl -i -N … > FILE\`.\n`);
  return explainBytes(bytes, source, name, json);
}

function explainBytes(bytes: Uint8Array, source: string, name: ProtocolName | undefined, json: boolean): CommandResult {
  const capture = readCapture(bytes);
  const guess = guessProtocol(capture.body, capture.head?.headers.get("content-type") ?? "");
  const protocol = protocols.get(name ?? guess ?? "openai-chat");
  if (protocol === undefined) throw new TypeError(`there is no protocol ${name}`);
  const protocolFrom = name !== undefined ? "option" : guess === undefined ? "default" : "content";
  const explanation = explain(capture, protocol);
  if (explanation.noStream && capture.head === undefined) {
    const what =
      "Expected server-sent events, JSON, JSON lines, an AWS event stream, or one of these after the headers of `curl -i`.";
    return failed(1, `${printable(source)} is no captured stream: it begins with ${opening(bytes)}. ${what}\n`);
  }
  const { noStream: _noStream, ...told } = explanation;
  if (!json) return { exitCode: 0, stdout: formatExplanation(capture, explanation, protocolFrom), stderr: "" };
  const http =
    capture.head === undefined
      ? undefined
      : { status: capture.head.status, contentType: capture.head.headers.get("content-type") };
  return {
    exitCode: 0,
    stdout: `${JSON.stringify({ ...told, protocolFrom, http }, null, 2)}\n`,
    stderr: "",
  };
}

interface Arguments {
  readonly path: string | undefined;
  readonly name: ProtocolName | undefined;
  readonly json: boolean;
  readonly help: boolean;
}

/** @returns the arguments, or what is wrong with them */
function parse(args: readonly string[]): Arguments | string {
  let parsed;
  try {
    const options = {
      protocol: { type: "string" },
      json: { type: "boolean" },
      help: { type: "boolean", short: "h" },
    } as const;
    parsed = parseArgs({ args: [...args], options, allowPositionals: true });
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  const { values, positionals } = parsed;
  const [command, path, ...more] = positionals;
  const help = values.help === true || args.length === 0;
  const { protocol: name, json = false } = values;
  if (!help && command !== "explain")
    return `There is no command ${JSON.stringify(command ?? "")}. The only one is explain.`;
  if (more.length > 0) return "Only one FILE can be explained at a time.";
  if (name !== undefined && !protocols.has(name))
    return `There is no protocol ${JSON.stringify(name)}. Take one of ${names}.`;
  return { path: path === "-" ? undefined : path, name: name as ProtocolName | undefined, json, help };
}

function opening(bytes: Uint8Array): string {
  const text = new TextDecoder().decode(bytes.subarray(0, 24));
  return JSON.stringify(text.replaceAll("\u{fffd}", "?"));
}

function failed(exitCode: 1 | 2, stderr: string): CommandResult {
  return { exitCode, stdout: "", stderr };
}
