import { describe, expect, it } from "vitest";
import { Inspector } from "../../src/gate/inspector.js";
import { defaultGateOptions, gateRules } from "../../src/gate/options.js";
import { protocols } from "../../src/gate/protocols/protocols.js";
import type { GateProtocol } from "../../src/gate/protocols/protocol.js";
import { bytesOf, releasedText } from "../fixtures/healthy.js";
import { overloadStreams } from "../fixtures/healthy-overload.js";
import { bytewise } from "../stream-cases.js";

const facts = { ttftTimeoutMs: undefined, anotherTarget: true, answersToolResult: false, requireTerminal: true };
const named = overloadStreams.map((one) => [`${one.protocol}: ${one.id}`, one] as const);

/** What the gate makes of a stream: whether it was released, complete, and what was put on record. */
function fateOf(name: string, chunks: Iterable<Uint8Array>): object {
  const protocol = protocols.get(name) as GateProtocol;
  const inspector = new Inspector(
    protocol,
    gateRules(protocol, defaultGateOptions, facts),
    defaultGateOptions.maxHeldBytes,
  );
  const outputs = Array.from(chunks, (chunk) => inspector.push(chunk).type);
  return { released: outputs.includes("release"), end: inspector.end(), recorded: inspector.recorded };
}

const healthy = { released: true, end: { type: "finish", complete: true }, recorded: undefined };

describe("a model that writes about errors", () => {
  it.each(named)("is not one: %s", async (_name, { protocol, wire }) => {
    const chunks = bytewise(bytesOf(wire));
    expect(fateOf(protocol, [bytesOf(wire)])).toEqual(healthy);
    expect(fateOf(protocol, chunks)).toEqual(healthy);
    expect(await releasedText([bytesOf(wire)], { protocol })).toBe(wire);
    expect(await releasedText(chunks, { protocol })).toBe(wire);
  });

  it.each(named)("is not one where events end in CRLF: %s", (_name, { protocol, wire }) => {
    const crlf = bytesOf(wire.replaceAll("\n", "\r\n"));
    expect(fateOf(protocol, [crlf])).toEqual(healthy);
    expect(fateOf(protocol, bytewise(crlf))).toEqual(healthy);
  });

  it("is a corpus for all three protocols", () => {
    for (const protocol of ["anthropic-messages", "openai-chat", "openai-responses"]) {
      expect(overloadStreams.filter((one) => one.protocol === protocol).length).toBeGreaterThanOrEqual(12);
    }
  });
});
