import { describe, expect, it } from "vitest";
import type { GateOutput, GateRules } from "../../src/gate/gate.js";
import { Inspector } from "../../src/gate/inspector.js";
import { defaultGateOptions, gateRules, type ResolvedGateOptions } from "../../src/gate/options.js";
import { anthropicMessages } from "../../src/gate/protocols/anthropic-messages.js";
import { openaiChat } from "../../src/gate/protocols/openai-chat.js";
import { openaiResponses } from "../../src/gate/protocols/openai-responses.js";
import type { GateProtocol } from "../../src/gate/protocols/protocol.js";
import {
  anthropicError,
  anthropicErrorAfterText,
  anthropicHealthy,
  anthropicPreamble,
  chatCompletion,
  chatHealthy,
  chatPreamble,
  responsesHealthy,
  responsesSplitFailure,
  sseComment,
  sseEvent,
} from "../../src/testing/index.js";
import { bytewise } from "../stream-cases.js";
import { bytesOf } from "../fixtures/healthy.js";

function rulesOf(
  protocol: GateProtocol,
  options: Partial<ResolvedGateOptions> = {},
  ttftTimeoutMs?: number,
): GateRules {
  const facts = { ttftTimeoutMs, anotherTarget: false, answersToolResult: false, requireTerminal: true };
  return gateRules(protocol, { ...defaultGateOptions, ...options }, facts);
}

function inspect(
  protocol: GateProtocol,
  options: Partial<ResolvedGateOptions> = {},
  ttftTimeoutMs?: number,
): Inspector {
  return new Inspector(
    protocol,
    rulesOf(protocol, options, ttftTimeoutMs),
    options.maxHeldBytes ?? defaultGateOptions.maxHeldBytes,
  );
}

/** The first output that is a decision. */
function decide(inspector: Inspector, chunks: Iterable<Uint8Array>): GateOutput {
  for (const chunk of chunks) {
    const output = inspector.push(chunk);
    if (output.type === "release" || output.type === "reject") return output;
  }
  return { type: "hold" };
}

function heldText(inspector: Inspector): string {
  return Buffer.concat(inspector.takeHeld()).toString();
}

/** After release: pushes the rest and ends. */
function finish(inspector: Inspector, ...rest: string[]): GateOutput {
  for (const text of rest) inspector.push(bytesOf(text));
  return inspector.end();
}

/** All of it at once, and one byte at a time. */
function bothWays(text: string): [string, Uint8Array[]][] {
  return [
    ["at once", [bytesOf(text)]],
    ["one byte at a time", bytewise(bytesOf(text))],
  ];
}

describe("what is held", () => {
  it("is handed out once, in order, up to the chunk that released", () => {
    const inspector = inspect(anthropicMessages);
    const events = anthropicHealthy();
    for (const event of events.slice(0, 3)) expect(inspector.push(bytesOf(event))).toEqual({ type: "hold" });
    expect(inspector.push(bytesOf(events[3] ?? "")).type).toBe("release");
    expect(heldText(inspector)).toBe(events.slice(0, 4).join(""));
    expect(inspector.takeHeld()).toEqual([]);
    expect(inspector.heldBytes).toBe(bytesOf(events.slice(0, 4).join("")).length);
  });

  it("is copied where a chunk is a small view on a large read", () => {
    const inspector = inspect(anthropicMessages);
    const read = new Uint8Array(65_536);
    const event = bytesOf(anthropicPreamble().join(""));
    read.set(event);
    inspector.push(read.subarray(0, event.length));
    read.fill(0);
    decide(inspector, [bytesOf(anthropicHealthy().slice(3).join(""))]);
    expect(heldText(inspector)).toBe(anthropicHealthy().join(""));
  });

  it("takes few objects where it comes byte by byte", () => {
    const inspector = inspect(anthropicMessages);
    const comments = sseComment("x".repeat(100)).repeat(2_000);
    for (const byte of bytewise(bytesOf(comments))) inspector.push(byte);
    decide(inspector, [bytesOf(anthropicHealthy().join(""))]);
    const held = inspector.takeHeld();
    expect(held.length).toBeLessThan(200);
    expect(Buffer.concat(held).toString()).toBe(comments + anthropicHealthy().join(""));
  });

  it("does not grow after close", () => {
    const inspector = inspect(anthropicMessages);
    inspector.close();
    expect(inspector.push(bytesOf("data: x\n\n"))).toEqual({ type: "ignore" });
    expect(inspector.takeHeld()).toEqual([]);
  });

  it("is not changed by an empty chunk", () => {
    const inspector = inspect(openaiChat, { inBandErrors: false });
    expect(inspector.push(new Uint8Array(0))).toEqual({ type: "hold" });
  });
});

describe("the limit on held bytes", () => {
  const limit = 300;

  it.each(bothWays(sseComment("y".repeat(400))))("releases what is no event, %s", (_how, chunks) => {
    const output = decide(inspect(openaiChat, { maxHeldBytes: limit }), chunks);
    expect(output).toEqual({ type: "release", reason: "overflow", overflow: "bytes" });
  });

  const late =
    chatPreamble().join("") + sseComment("y".repeat(300)) + sseEvent({ error: { message: "no", code: 503 } });
  it.each(bothWays(late))("comes before a failure behind it, %s", (_how, chunks) => {
    expect(decide(inspect(openaiChat, { maxHeldBytes: limit }), chunks)).toMatchObject({
      type: "release",
      overflow: "bytes",
    });
  });

  const [created = "", failed = "", detail = ""] = responsesSplitFailure();
  it.each(bothWays(created + failed + detail))("ends the wait for a detail that lies behind it, %s", (_how, chunks) => {
    const maxHeldBytes = bytesOf(created + failed).length + 10;
    const output = decide(inspect(openaiResponses, { maxHeldBytes }), chunks);
    expect(output).toMatchObject({ type: "reject", failure: { kind: "unexplained", code: "response_failed" } });
  });

  it("rejects where overflow fails", () => {
    const output = decide(
      inspect(openaiChat, { maxHeldBytes: limit, onOverflow: "fail" }),
      bytewise(bytesOf("x".repeat(400))),
    );
    expect(output).toMatchObject({ type: "reject", failure: { kind: "gate-overflow" }, overflow: "bytes" });
  });

  it("lets a frame end at it to the byte", () => {
    const text = chatHealthy().slice(0, 2).join("");
    const output = decide(inspect(openaiChat, { maxHeldBytes: bytesOf(text).length }), bytewise(bytesOf(text)));
    expect(output).toEqual({ type: "release", reason: "output" });
  });
});

describe("a JSON body", () => {
  const body = JSON.stringify(chatCompletion());

  it.each(bothWays(body))("is known as one, %s", (_how, chunks) => {
    const inspector = inspect(openaiChat);
    expect(decide(inspector, chunks)).toEqual({ type: "release", reason: "output" });
    expect(inspector.jsonBody).toBe(true);
    expect(inspector.end()).toEqual({ type: "finish", complete: true });
  });

  it.each(bothWays(body))("is known as one where validation is off, %s", (_how, chunks) => {
    const inspector = inspect(openaiChat, { inBandErrors: false });
    for (const chunk of chunks) inspector.push(chunk);
    expect(inspector.jsonBody).toBe(true);
    expect(inspector.end()).toEqual({ type: "finish", complete: true });
  });

  it("is known as one before its first value is complete", () => {
    const inspector = inspect(openaiChat);
    inspector.push(bytesOf(body.slice(0, 40)));
    expect(inspector.deadline("hold", 50_000)).toMatchObject({ type: "release", overflow: "time" });
    expect(inspector.jsonBody).toBe(true);
    expect(finish(inspector, body.slice(40))).toEqual({ type: "finish", complete: true });
  });

  it("that is cut short after release fails", () => {
    const inspector = inspect(openaiChat);
    inspector.push(bytesOf(body.slice(0, 40)));
    inspector.deadline("hold", 50_000);
    expect(finish(inspector, body.slice(40, 60))).toMatchObject({
      type: "fail",
      failure: { kind: "truncated-stream" },
    });
  });

  it("that is larger than the limit is not said to be cut short", () => {
    const inspector = inspect(openaiChat, { maxHeldBytes: 100 });
    const big = JSON.stringify(chatCompletion({ text: "z".repeat(1_000) }));
    for (const chunk of bytewise(bytesOf(big))) inspector.push(chunk);
    expect(inspector.end()).toEqual({ type: "finish", complete: false });
  });

  it("is not what a stream of lines is", () => {
    const lines: GateProtocol = { ...openaiChat, framing: "line" };
    const inspector = new Inspector(lines, rulesOf(lines, { inBandErrors: false }), 1_000);
    inspector.push(bytesOf('{"a":1}\n'));
    expect(inspector.jsonBody).toBe(false);
  });
});

describe("a release without a look", () => {
  it("gives the first bytes to a protocol that is decoded throughout", () => {
    const decoded: GateProtocol = { ...openaiChat, framing: "decoded" };
    const inspector = new Inspector(decoded, rulesOf(decoded, { inBandErrors: false }), 1_000);
    expect(inspector.push(bytesOf(chatHealthy().join("")))).toEqual({ type: "release", reason: "ungated" });
    expect(inspector.end()).toEqual({ type: "finish", complete: true });
  });

  it("records an error in the chunk that released", () => {
    const inspector = inspect(openaiChat, { inBandErrors: false });
    inspector.push(bytesOf(sseEvent({ error: { message: "no", code: 503 } })));
    expect(inspector.recorded).toMatchObject({ status: 503 });
  });

  it("records an error that is the first event under a TTFT timeout", () => {
    const inspector = inspect(openaiChat, { inBandErrors: false }, 1_000);
    expect(inspector.push(bytesOf(sseEvent({ error: { message: "no", code: 503 } })))).toMatchObject({
      type: "release",
    });
    expect(inspector.recorded).toMatchObject({ status: 503 });
    expect(inspector.end()).toMatchObject({ type: "finish" });
  });

  it("rejects an overload, and records another error", () => {
    const overloaded = decide(inspect(anthropicMessages, { inBandErrors: false }), [bytesOf(anthropicError())]);
    expect(overloaded).toMatchObject({ type: "reject", failure: { status: 503 } });
    const inspector = inspect(anthropicMessages, { inBandErrors: false });
    decide(inspector, [bytesOf(anthropicError({ type: "api_error", message: "no" }))]);
    expect(inspector.recorded).toMatchObject({ status: 500, type: "api_error" });
  });

  it("is done for a page of HTML, which then ends without completion", () => {
    const inspector = inspect(openaiChat, { inBandErrors: false });
    expect(inspector.push(bytesOf("<html>"))).toMatchObject({ type: "release", reason: "ungated" });
    expect(inspector.end()).toMatchObject({ type: "fail", append: true });
  });
});

describe("after release", () => {
  it("judges frames of the chunk that released", () => {
    const inspector = inspect(anthropicMessages);
    inspector.push(bytesOf(anthropicErrorAfterText().join("")));
    expect(inspector.recorded).toMatchObject({ status: 503, code: "overloaded_error" });
    expect(inspector.end()).toEqual({ type: "finish", complete: false });
  });

  it("goes on with a frame that had begun before it", () => {
    const text = anthropicHealthy().join("");
    const cut = text.length - 10;
    const inspector = inspect(anthropicMessages);
    inspector.push(bytesOf(text.slice(0, cut)));
    expect(finish(inspector, text.slice(cut))).toEqual({ type: "finish", complete: true });
  });

  it("loses nothing of an event that a comment had interrupted at release", () => {
    const inspector = inspect(openaiChat);
    const [role = "", first = ""] = chatHealthy();
    inspector.push(bytesOf(`${role}${first}data: [DONE]\n: comment\n`));
    expect(finish(inspector, "\n")).toEqual({ type: "finish", complete: true });
  });

  it("sees the last line of a server that ends events with one line feed", () => {
    const inspector = inspect(openaiChat);
    const [role = "", first = ""] = chatHealthy();
    inspector.push(bytesOf(`${role.trimEnd()}\n${first.trimEnd()}\n`));
    expect(inspector.phase).toBe("committed");
    expect(finish(inspector, "data: [DONE]\n\n")).toEqual({ type: "finish", complete: true });
  });

  it("takes a Responses error for the end, and keeps it on record", () => {
    const inspector = inspect(openaiResponses);
    const events = responsesHealthy().slice(0, 6);
    inspector.push(bytesOf(events.join("")));
    inspector.push(bytesOf(sseEvent({ type: "error", code: "server_error", message: "no", sequence_number: 6 })));
    expect(inspector.recorded).toMatchObject({ code: "server_error" });
    expect(inspector.error(new Error("reset"))).toEqual({ type: "finish", complete: true });
  });

  it("knows what number an added event must have, and the response's id", () => {
    const inspector = inspect(openaiResponses);
    const events = responsesHealthy();
    for (const event of events.slice(0, 7)) inspector.push(bytesOf(event));
    expect(inspector.sequenceNumber).toBe(6);
    expect(inspector.responseId).toBe("resp_01firstchunk");
  });

  it("forwards, and ends as soon as it is asked to", () => {
    const inspector = inspect(anthropicMessages);
    inspector.push(bytesOf(anthropicHealthy().slice(0, 4).join("")));
    expect(inspector.push(bytesOf(": x\n\n"))).toEqual({ type: "forward" });
    expect(inspector.deadline("idle", 5)).toMatchObject({
      type: "fail",
      failure: { kind: "idle-timeout" },
      append: true,
    });
    expect(inspector.push(bytesOf(": x\n\n"))).toEqual({ type: "ignore" });
  });
});

describe("the end", () => {
  it("reads an unterminated last event for a failure", () => {
    const inspector = inspect(anthropicMessages);
    inspector.push(bytesOf(anthropicError().trimEnd()));
    expect(inspector.end()).toMatchObject({ type: "reject", failure: { status: 503 } });
  });

  it("does not take an unterminated last event for output", () => {
    const inspector = inspect(openaiChat);
    inspector.push(bytesOf(chatHealthy().slice(0, 2).join("").trimEnd()));
    expect(inspector.end()).toMatchObject({ type: "reject", failure: { kind: "truncated-stream" } });
  });

  it("comes a second time where the first was a release", () => {
    const inspector = inspect(openaiChat);
    inspector.push(bytesOf(sseEvent({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })));
    expect(inspector.end()).toEqual({ type: "release", reason: "empty" });
    expect(inspector.end()).toEqual({ type: "finish", complete: true });
  });
});
