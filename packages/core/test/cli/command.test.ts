import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { runCommand, type CommandResult } from "../../src/cli/command.js";
import type { Explanation } from "../../src/cli/explain.js";
import { awsException } from "../fixtures/aws-messages.js";
import { converseWires, invokeWires } from "../fixtures/healthy-bedrock.js";
import { geminiWires, interactionsWires } from "../fixtures/healthy-google.js";
import { ollamaWires } from "../fixtures/healthy-ollama.js";
import { joined, streamCases } from "../stream-cases.js";

function run(content: string | Uint8Array, ...args: string[]): Promise<CommandResult> {
  return runCommand(["explain", "capture.txt", ...args], async () => new Uint8Array(Buffer.from(content as string)));
}

async function explained(
  content: string | Uint8Array,
  ...args: string[]
): Promise<Explanation & { protocolFrom: string }> {
  const { exitCode, stdout, stderr } = await run(content, "--json", ...args);
  expect([exitCode, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout) as Explanation & { protocolFrom: string };
}

const event = (value: object): string =>
  `event: ${"type" in value ? String(value.type) : ""}\ndata: ${JSON.stringify(value)}\n\n`;
const start = event({ type: "message_start", message: { id: "m", content: [] } });
const text = event({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hi" } });
const stop = event({ type: "message_delta", delta: { stop_reason: "end_turn" } }) + event({ type: "message_stop" });
const overloaded = event({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } });

describe("explain", () => {
  it("shows each frame with its verdict, what the gate does, and the outcome", async () => {
    const { stdout } = await run(start + ": ping\n\n" + overloaded);
    expect(stdout.split("\n").map((line) => line.replace(/ {2,}\{.*/, "").trimEnd())).toEqual([
      "protocol  anthropic-messages (told by its content; --protocol decides otherwise)",
      `body      ${start.length + 8 + overloaded.length} bytes, 3 frames`,
      "",
      expect.stringMatching(/^# {2}bytes +frame +verdict +gate +data$/),
      expect.stringMatching(/^1 {2}0-\d+ +message_start +neutral +hold$/),
      expect.stringMatching(/^2 {2}\d+-\d+ +comment +ignored +ignore$/),
      expect.stringMatching(/^3 {2}\d+-\d+ +error +failure 503 overloaded_error +reject$/),
      "",
      "outcome   rejected at frame 3: 503 overloaded_error, retryable",
      "message   Overloaded",
      "",
    ]);
  });

  it("says where a healthy stream is released", async () => {
    expect((await explained(start + text + stop)).outcome).toEqual({
      result: "released",
      frame: 2,
      reason: "output",
      status: 200,
    });
  });

  it("goes on after the release, to the end", async () => {
    expect((await explained(start + text)).outcome).toMatchObject({
      result: "broken",
      frame: 2,
      code: "upstream_truncated_stream",
    });
    expect((await explained(start + text + overloaded)).outcome).toMatchObject({
      result: "broken",
      code: "overloaded_error",
    });
  });

  it("comes to the recorded outcome for each recorded stream that has one", async () => {
    const ended = streamCases.filter(
      (one) =>
        one.http.content_encoding === undefined &&
        one.expected.action !== "wait" &&
        one.end !== "stall" &&
        one.chunks.length > 0,
    );
    for (const one of ended) {
      const { exitCode, stdout } = await run(joined(one.chunks), "--json", "--protocol", one.protocol);
      if (exitCode === 1) continue;
      const { outcome } = JSON.parse(stdout) as Explanation;
      const { action, status, code } = one.expected;
      expect([one.id, outcome.result === "rejected" ? "fail" : "release"]).toEqual([one.id, action]);
      if (action === "fail")
        expect([one.id, outcome]).toMatchObject([one.id, { status, ...(code === undefined ? {} : { code }) }]);
    }
  });
});

describe("the protocol", () => {
  it.each([
    ["anthropic-messages", start + text],
    ["openai-chat", 'data: {"choices":[]}\n\n'],
    ["openai-responses", 'data: {"type":"response.created"}\n\n'],
    ["gemini", geminiWires["text"]],
    ["gemini", geminiWires["a JSON array"]],
    ["gemini-interactions", interactionsWires["text"]],
    ["bedrock-invoke", invokeWires["text"]],
    ["bedrock-converse", converseWires["text"]],
    ["bedrock-invoke", awsException("throttlingException", { message: "x" })],
    ["ollama", ollamaWires["text"]],
  ])("%s is told by the content", async (protocol, content) => {
    expect(await explained(content)).toMatchObject({ protocol, protocolFrom: "content" });
  });

  it("is assumed where nothing in the content is typical", async () => {
    expect(await explained(": keep-alive\n\n")).toMatchObject({ protocol: "openai-chat", protocolFrom: "default" });
  });

  it("is the one that is asked for", async () => {
    expect(await explained(start + text, "--protocol", "openai-chat")).toMatchObject({
      protocol: "openai-chat",
      protocolFrom: "option",
    });
  });
});

describe("a capture with HTTP heads", () => {
  const head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";

  it.each([
    ["curl -i prints", `${head}\r\n${start}${text}${stop}`],
    [
      "curl -i prints behind a proxy and after a 100",
      `HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n${head}\r\n${start}${text}${stop}`,
    ],
    ["HTTP/2 has", `HTTP/2 200 \ncontent-type: text/event-stream\n\n${start}${text}${stop}`],
  ])("as %s is read", async (_name, content) => {
    expect(await explained(content)).toMatchObject({
      http: { status: 200, contentType: "text/event-stream" },
      outcome: { result: "released" },
    });
  });

  it("may have its chunks, or curl's body without them", async () => {
    const body = start + text + stop;
    const chunked = `${head}transfer-encoding: chunked\r\n\r\n`;
    const size = (part: string): string => `${Buffer.byteLength(part).toString(16)}\r\n${part}\r\n`;
    expect((await explained(`${chunked}${size(body.slice(0, 30))}${size(body.slice(30))}0\r\n\r\n`)).bytes).toBe(
      body.length,
    );
    expect((await explained(chunked + body)).bytes).toBe(body.length);
  });

  it("may be compressed, or say so although curl decoded it", async () => {
    const body = start + text + stop;
    const compressed = Buffer.from(`${head}content-encoding: gzip\r\n\r\n`);
    expect((await explained(Buffer.concat([compressed, gzipSync(body)]))).bytes).toBe(body.length);
    expect((await explained(Buffer.concat([compressed, Buffer.from(body)]))).bytes).toBe(body.length);
  });

  it("with an error status is explained by that", async () => {
    const { stdout } = await run(
      'HTTP/1.1 529 Overloaded\r\ncontent-type: application/json\r\n\r\n{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
    );
    expect(stdout).toContain("outcome   rejected for its status: 503 overloaded_error, retryable");
  });
});

describe("what is no stream", () => {
  it.each([
    ["a picture", Buffer.from("89504e470d0a1a0a0000000d49484452", "hex")],
    ["prose", "Dear Sir or Madam,\nno stream here.\n"],
    ["a program", Buffer.from("\u007fELF\0\0\0\n[]\n: \0\n")],
    ["zeros", Buffer.alloc(64)],
    ["blank lines", "\n\n\n"],
  ])("gets an error that says what was expected: %s", async (_name, content) => {
    const { exitCode, stdout, stderr } = await run(content);
    expect([exitCode, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/^capture\.txt is no captured stream: it begins with ".*"\. Expected server-sent events/);
  });

  it("is explained all the same where it was an answer", async () => {
    expect((await explained("HTTP/1.1 200 OK\r\n\r\nBad Gateway")).outcome).toMatchObject({
      result: "rejected",
      code: "upstream_invalid_body",
    });
    expect((await explained("<html>")).outcome).toMatchObject({ result: "rejected", code: "upstream_invalid_body" });
  });

  it("may be empty, or missing", async () => {
    expect(await run("")).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("capture.txt is empty") });
    const missing = runCommand(["explain", "x"], () => Promise.reject(new Error("ENOENT: no such file")));
    expect(await missing).toMatchObject({ exitCode: 1, stderr: "Cannot read x: ENOENT: no such file\n" });
  });
});

describe("the command line", () => {
  const nothing = (): Promise<Uint8Array> => Promise.reject(new Error("nothing is read"));

  it.each([
    [["expalin", "x"], 'There is no command "expalin"'],
    [["explain", "x", "y"], "Only one FILE"],
    [["explain", "x", "--protocol", "soap"], 'There is no protocol "soap". Take one of anthropic-messages'],
    [["explain", "--what"], "Unknown option '--what'"],
  ])("%s is answered with what is wrong", async (args, message) => {
    const { exitCode, stderr } = await runCommand(args, nothing);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(message);
  });

  it("prints how it is used", async () => {
    for (const args of [[], ["--help"], ["explain", "-h"]]) {
      expect(await runCommand(args, nothing)).toMatchObject({
        exitCode: 0,
        stdout: expect.stringMatching(/^Usage: explain/),
      });
    }
  });

  it("reads standard input without a file", async () => {
    const asked: (string | undefined)[] = [];
    const read = (path: string | undefined): Promise<Uint8Array> => (
      asked.push(path),
      Promise.resolve(Buffer.from(start))
    );
    await runCommand(["explain"], read);
    await runCommand(["explain", "-"], read);
    expect(asked).toEqual([undefined, undefined]);
  });

  it("hands nothing to the terminal that it would obey", async () => {
    const { stdout } = await run(
      event({ type: "error", error: { type: "\u001b[31mx", message: "\u001b]0;title\u0007\u202e" } }),
    );
    expect(["\u001b", "\u0007", "\u202e"].filter((character) => stdout.includes(character))).toEqual([]);
  });

  it("never throws", async () => {
    const content = fc.oneof(
      fc.uint8Array(),
      fc.string(),
      fc.string().map((tail) => `HTTP/1.1 200 OK\r\n${tail}`),
    );
    await fc.assert(
      fc.asyncProperty(content, async (bytes) => {
        expect([0, 1]).toContain((await run(bytes)).exitCode);
      }),
    );
  });
});

describe("the program", () => {
  const main = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));

  it("runs as built", async () => {
    const { stdout } = await promisify(execFile)(process.execPath, [main, "--help"]);
    expect(stdout).toMatch(/^Usage: explain/);
  });
});
