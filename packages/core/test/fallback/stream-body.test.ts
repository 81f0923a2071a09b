import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isGatewayError } from "../../src/errors.js";
import type { BodyEnd, BodySink, CancelReason } from "../../src/events.js";
import { StreamBody, type BodySource } from "../../src/fallback/stream-body.js";
import { networkFailure } from "../../src/gate/failures.js";

const failure = networkFailure(undefined, true);
const broken: BodyEnd = { type: "fail", failure };
const finished: BodyEnd = { type: "finish" };

class Source implements BodySource {
  calls: string[] = [];
  pause(): void {
    this.calls.push("pause");
  }
  resume(): void {
    this.calls.push("resume");
  }
  cancel(reason: CancelReason): void {
    this.calls.push(`cancel ${reason}`);
  }
  handedOver(): void {
    this.calls.push("handed over");
  }
}

/** Takes chunks, and says that it is full where it is told to. */
class Sink implements BodySink {
  text = "";
  ends: BodyEnd[] = [];
  full = false;
  write(chunk: Uint8Array): boolean {
    if (this.ends.length > 0) throw new Error("written to after its end");
    this.text += Buffer.from(chunk).toString();
    return !this.full;
  }
  end(end: BodyEnd): void {
    this.ends.push(end);
  }
}

function bytes(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

function start(...held: readonly string[]): { body: StreamBody; source: Source; sink: Sink } {
  const source = new Source();
  return { body: new StreamBody(source, held.map(bytes)), source, sink: new Sink() };
}

describe("a piped body", () => {
  it("delivers what was held, then what comes, then the end", () => {
    const { body, source, sink } = start("a", "b");
    body.push(bytes("c"));
    body.pipeTo(sink);
    expect(sink.text).toBe("abc");
    body.push(bytes("d"));
    body.finish(finished);
    expect(sink).toMatchObject({ text: "abcd", ends: [finished] });
    expect(source.calls.at(-1)).toBe("handed over");
  });

  it("delivers a stream that was over before anybody read it", () => {
    const { body, sink } = start("a");
    body.push(bytes("b"));
    body.finish(broken);
    body.pipeTo(sink);
    expect(sink).toMatchObject({ text: "ab", ends: [broken] });
  });

  it("stops the source when the sink is full, and goes on when it is not", () => {
    const { body, source, sink } = start();
    body.pipeTo(sink);
    sink.full = true;
    body.push(bytes("a"));
    expect(source.calls.at(-1)).toBe("pause");
    body.push(bytes("b"));
    expect(sink.text).toBe("a");
    sink.full = false;
    body.resume();
    expect(sink.text).toBe("ab");
    expect(source.calls.at(-1)).toBe("resume");
  });

  it("stays stopped when the sink fills up again", () => {
    const { body, source, sink } = start("a");
    sink.full = true;
    body.pipeTo(sink);
    body.push(bytes("b"));
    expect(sink.text).toBe("a");
    source.calls = [];
    body.resume();
    expect(sink.text).toBe("ab");
    expect(source.calls).toEqual(["pause"]);
  });

  it("hands on what is queued as one chunk, up to 64 KiB", () => {
    const { body, sink } = start("a", "b", "x".repeat(65_534), "c", "y".repeat(70_000), "d");
    const lengths: number[] = [];
    sink.write = (chunk) => lengths.push(chunk.length) > 0;
    body.pipeTo(sink);
    expect(lengths).toEqual([65_536, 1, 70_000, 1]);
  });

  it("ends although the sink is full, once it has everything", () => {
    const { body, sink } = start();
    body.pipeTo(sink);
    sink.full = true;
    body.push(bytes("a"));
    body.finish(finished);
    expect(sink.ends).toEqual([finished]);
    body.resume();
    expect(sink.ends).toEqual([finished]);
  });

  it("keeps the end behind what the sink has not taken", () => {
    const { body, sink } = start("a", "b");
    sink.full = true;
    body.pipeTo(sink);
    body.push(bytes("error event"));
    body.finish(broken);
    expect(sink.ends).toEqual([]);
    body.resume();
    body.resume();
    expect(sink).toMatchObject({ text: "aberror event", ends: [broken] });
  });

  it("drops what comes after the end", () => {
    const { body, sink } = start();
    body.pipeTo(sink);
    body.finish(finished);
    body.push(bytes("late"));
    body.finish(broken);
    expect(sink).toMatchObject({ text: "", ends: [finished] });
  });

  it("stops a source of which 64 KiB are queued unread", () => {
    const { body, source } = start();
    body.push(new Uint8Array(65_536));
    expect(source.calls).toEqual([]);
    body.push(bytes("a"));
    expect(source.calls).toEqual(["pause"]);
  });

  it("is read once", () => {
    const { body, sink } = start();
    body.pipeTo(sink);
    expect(() => body.pipeTo(new Sink())).toThrow("already being read");
    expect(() => body[Symbol.asyncIterator]()).toThrow("already being read");
  });
});

describe("a body that is cancelled", () => {
  it("tells its source once, with the reason", () => {
    const { body, source } = start("a");
    body.cancel("write-stall");
    body.cancel();
    expect(source.calls).toEqual(["cancel write-stall"]);
  });

  it.each(["before it is read", "while it is read", "while it is full", "with its end under way"])(
    "%s delivers nothing more",
    (moment) => {
      const { body, source, sink } = start("a");
      if (moment !== "before it is read") {
        sink.full = moment !== "while it is read";
        body.pipeTo(sink);
      }
      if (moment === "with its end under way") {
        body.push(bytes("b"));
        body.finish(finished);
      }
      const before = sink.text;
      body.cancel();
      body.push(bytes("late"));
      body.finish(broken);
      body.resume();
      expect(sink).toMatchObject({ text: before, ends: [] });
      expect(source.calls.filter((call) => call.startsWith("cancel"))).toEqual(["cancel client-abort"]);
      expect(source.calls).not.toContain("handed over");
    },
  );

  it("from within a write stops there", () => {
    const long = "x".repeat(65_536);
    const { body, sink } = start(long, "b", long);
    let writes = 0;
    sink.write = (chunk) => {
      sink.text += Buffer.from(chunk).toString();
      writes += 1;
      if (writes === 2) body.cancel();
      return true;
    };
    body.pipeTo(sink);
    expect(sink).toMatchObject({ text: `${long}b`, ends: [] });
  });

  it("after its end is left alone", () => {
    const { body, source, sink } = start();
    body.pipeTo(sink);
    body.finish(finished);
    body.cancel();
    expect(source.calls.at(-1)).toBe("handed over");
  });
});

describe("an iterated body", () => {
  it("yields everything and ends", async () => {
    const { body, source } = start("a", "b");
    body.push(bytes("c"));
    body.finish(finished);
    let text = "";
    for await (const chunk of body) text += Buffer.from(chunk).toString();
    expect(text).toBe("abc");
    expect(source.calls).not.toContain("cancel client-abort");
  });

  it("throws what broke it after its last byte, once", async () => {
    const { body } = start("a");
    body.finish(broken);
    const iterator = body[Symbol.asyncIterator]();
    expect((await iterator.next()).done).toBe(false);
    await expect(iterator.next()).rejects.toSatisfy((error) => isGatewayError(error) && error.kind === "network");
    expect((await iterator.next()).done).toBe(true);
  });

  it("pauses the source between reads", async () => {
    const { body, source } = start();
    const iterator = body[Symbol.asyncIterator]();
    const next = iterator.next();
    body.push(bytes("a"));
    await next;
    expect(source.calls.at(-1)).toBe("pause");
    void iterator.next();
    expect(source.calls.at(-1)).toBe("resume");
  });

  it("answers several reads in order", async () => {
    const { body } = start();
    const iterator = body[Symbol.asyncIterator]();
    const reads = [iterator.next(), iterator.next(), iterator.next()];
    body.push(bytes("a"));
    body.push(bytes("b"));
    body.finish(finished);
    const results = await Promise.all(reads);
    expect(results.map(({ value }) => (value === undefined ? "end" : Buffer.from(value).toString()))).toEqual([
      "a",
      "b",
      "end",
    ]);
  });

  it("is cancelled by a reader that breaks off", async () => {
    const { body, source } = start("a", "b");
    for await (const _ of body) break;
    expect(source.calls).toContain("cancel client-abort");
  });

  it("that is cancelled elsewhere throws, so that it never looks complete", async () => {
    const { body } = start();
    const next = body[Symbol.asyncIterator]().next();
    body.cancel();
    await expect(next).rejects.toSatisfy((error) => isGatewayError(error) && error.status === 499);
  });

  it("that was cancelled before it is read throws", async () => {
    const { body } = start("a");
    body.cancel();
    await expect(body[Symbol.asyncIterator]().next()).rejects.toSatisfy(isGatewayError);
  });
});

describe("any interleaving", () => {
  type Action = "push" | "full" | "free" | "resume" | "pipe";
  const actions = fc.array(fc.constantFrom<Action>("push", "push", "full", "free", "resume", "pipe"), {
    maxLength: 60,
  });

  it("delivers all bytes in order, once, and one end, and reads only while there is room", () => {
    const property = fc.property(actions, fc.nat(4), fc.boolean(), (steps, heldCount, breaks) => {
      const held = Array.from({ length: heldCount }, (_, index) => `h${index},`);
      const { body, source, sink } = start(...held);
      let pushed = held.join("");
      let piped = false;
      for (const [index, step] of steps.entries()) {
        if (step === "push") {
          body.push(bytes(`${index},`));
          pushed += `${index},`;
        } else if (step === "full") sink.full = true;
        else if (step === "free") sink.full = false;
        else if (step === "resume") body.resume();
        else if (!piped) {
          piped = true;
          body.pipeTo(sink);
        }
        expect(pushed.startsWith(sink.text)).toBe(true);
      }
      body.finish(breaks ? broken : finished);
      sink.full = false;
      if (!piped) body.pipeTo(sink);
      body.resume();
      expect(sink.text).toBe(pushed);
      expect(sink.ends).toEqual([breaks ? broken : finished]);
      expect(source.calls.filter((call) => call === "handed over")).toHaveLength(1);
    });
    fc.assert(property, { numRuns: 500 });
  });
});
