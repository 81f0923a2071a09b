import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { brokenFraming, createAwsDecoder, encodeAwsException } from "../../src/gate/aws-frames.js";
import type { Frame } from "../../src/gate/frame.js";
import { awsChunk, awsError, awsEvent, awsException, awsMessage } from "../fixtures/aws-messages.js";
import { bytewise, cutAt } from "../stream-cases.js";

function framesOf(chunks: readonly Uint8Array[]): Frame[] {
  const decoder = createAwsDecoder();
  return [...chunks.flatMap((chunk) => decoder.push(chunk)), ...decoder.end()];
}

const start = awsEvent("messageStart", { role: "assistant" });
const healthy = Buffer.concat([
  start,
  awsEvent("contentBlockDelta", { delta: { text: "Grüße 🦊" } }),
  awsChunk({ type: "ping" }),
]);

describe("the AWS event stream framing", () => {
  it("gives an event a message, with where it lies", () => {
    expect(framesOf([start])).toEqual([
      { kind: "event", event: "messageStart", data: '{"role":"assistant"}', start: 0, end: start.length },
    ]);
  });

  it("gives exceptions and errors the shape of an error event", () => {
    const [exception, error] = framesOf([
      awsException("throttlingException", { message: "slow down" }),
      awsError("InternalFailure", "oops"),
    ]);
    expect(exception).toMatchObject({
      event: "error",
      data: '{"error":{"code":"throttlingException","message":"slow down"}}',
    });
    expect(error).toMatchObject({ event: "error", data: '{"error":{"code":"InternalFailure","message":"oops"}}' });
  });

  it("ignores what another system said inside an exception", () => {
    const payload = { message: "stream error", originalStatusCode: 400, originalMessage: "no" };
    expect(framesOf([awsException("modelStreamErrorException", payload)])).toMatchObject([
      { data: '{"error":{"code":"modelStreamErrorException","message":"stream error"}}' },
    ]);
  });

  it("takes an exception whose payload is no JSON", () => {
    expect(framesOf([awsException("validationException", "<html>")])).toMatchObject([
      { data: '{"error":{"code":"validationException"}}' },
    ]);
  });

  it("takes a message of no type for an event", () => {
    expect(framesOf([awsMessage({}, "x")])).toMatchObject([{ event: "", data: "x" }]);
  });

  it("is the same one byte at a time, and however it is split", () => {
    const whole = framesOf([healthy]);
    expect(whole).toHaveLength(3);
    expect(framesOf(bytewise(healthy))).toEqual(whole);
    fc.assert(
      fc.property(fc.array(fc.nat(2_000)), (places) => {
        expect(framesOf(cutAt(healthy, places))).toEqual(whole);
      }),
    );
  });

  it("does not depend on the caller's buffer, which may be reused", () => {
    const decoder = createAwsDecoder();
    const half = Uint8Array.from(start.subarray(0, 40));
    decoder.push(half);
    half.fill(0xff);
    expect(decoder.push(start.subarray(40))).toMatchObject([{ event: "messageStart" }]);
  });

  it("notices every changed bit", () => {
    for (let bit = 0; bit < start.length * 8; bit += 1) {
      const changed = Uint8Array.from(start);
      changed[bit >> 3] = changed[bit >> 3] ^ (1 << (bit & 7));
      const frames = framesOf([changed, awsEvent("messageStop", {})]);
      expect(frames.some((frame) => frame.kind === "event" && frame.event === "messageStart")).toBe(false);
    }
  });

  it("says once that the framing is broken, and nothing after", () => {
    const wrong = Uint8Array.from(start);
    wrong[wrong.length - 1] = wrong[wrong.length - 1] ^ 1;
    expect(framesOf([wrong, start, start])).toEqual([
      { kind: "event", event: brokenFraming, data: brokenFraming, start: 0, end: start.length },
    ]);
  });

  it.each([
    ["a length below the overhead", [0, 0, 0, 15, 0, 0, 0, 0]],
    ["a length beyond the limit", [1, 2, 0, 17, 0, 0, 0, 0]],
    ["headers longer than the message", [0, 0, 0, 32, 0, 0, 0, 17]],
    ["headers beyond their limit", [0, 16, 0, 0, 0, 2, 0, 1]],
  ])("does not wait for %s", (_name, prelude) => {
    const decoder = createAwsDecoder();
    expect(decoder.push(Uint8Array.from([...prelude, 0, 0, 0, 0]))).toMatchObject([{ event: brokenFraming }]);
    expect(decoder.pendingBytes).toBe(0);
  });

  it("does not wait for a length whose checksum is wrong", () => {
    expect(createAwsDecoder().push(Uint8Array.from([0, 15, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4]))).toMatchObject([
      { event: brokenFraming },
    ]);
  });

  it("counts what it keeps of a message", () => {
    const decoder = createAwsDecoder();
    decoder.push(start.subarray(0, 30));
    expect(decoder.pendingBytes).toBe(30);
  });

  it("reads a body that cannot be in it as text", () => {
    expect(framesOf([Buffer.from('\n{"message": "no"}')])).toMatchObject([{ kind: "json", data: '{"message": "no"}' }]);
    expect(framesOf([Buffer.from("<html>")])).toMatchObject([{ kind: "foreign" }]);
    expect(framesOf(bytewise(Buffer.from('{"message": "no"}')))).toMatchObject([{ kind: "json" }]);
  });

  it("says nothing of a message that is cut short", () => {
    expect(framesOf([start, start.subarray(0, 50)])).toHaveLength(1);
  });

  it("never throws, and never keeps more than it was given", () => {
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 200 }),
      fc.uint8Array({ maxLength: 100 }).map((tail) => Uint8Array.from([0, 0, 0, ...tail])),
      fc.uint8Array({ maxLength: 200 }).map((payload) => Uint8Array.from(awsMessage({ ":event-type": "x" }, payload))),
    );
    fc.assert(
      fc.property(fc.array(bytes), (chunks) => {
        const decoder = createAwsDecoder();
        let given = 0;
        for (const chunk of chunks) {
          decoder.push(chunk);
          given += chunk.length;
          expect(decoder.pendingBytes).toBeLessThanOrEqual(given);
        }
        decoder.end();
      }),
    );
  });

  it("is written as it is read", () => {
    const bytes = encodeAwsException("throttlingException", { message: "é" });
    expect(Buffer.from(bytes)).toEqual(awsException("throttlingException", { message: "é" }));
  });
});
