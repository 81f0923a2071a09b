import { AsyncLocalStorage } from "node:async_hooks";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { JoinedChunks } from "../../src/upstream/joined-chunks.js";
import { rawServer, okHead } from "./raw-server.js";
import { exchange, post, testClient } from "./recorder.js";
import { scriptedExchange } from "./scripted-dispatcher.js";

/** What is put off to the end of a turn of the event loop, and what that puts off. */
async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
  await new Promise((resolve) => setImmediate(resolve));
}

describe("the chunks of an answer", () => {
  it("are joined where they come in one read", async () => {
    const server = await rawServer(({ socket }) =>
      socket.write(`${okHead}transfer-encoding: chunked\r\n\r\n2\r\nab\r\n2\r\ncd\r\n2\r\nef\r\n0\r\n\r\n`),
    );
    const recorder = await exchange(testClient(), post(server.origin));
    expect(recorder.chunks).toEqual(["abcdef"]);
    expect(recorder.calls).toEqual(["connected", "head", "data", "end"]);
  });

  it("come when the read is over", async () => {
    const { recorder, read } = scriptedExchange();
    read("ab");
    read("cd");
    expect(recorder.chunks).toEqual([]);
    await turn();
    read("ef");
    await turn();
    expect(recorder.chunks).toEqual(["abcd", "ef"]);
  });

  it("come as they are where a read brings one", async () => {
    const { recorder, read } = scriptedExchange();
    for (const chunk of ["ab", "cd", "ef"]) {
      read(chunk);
      await turn();
    }
    expect(recorder.chunks).toEqual(["ab", "cd", "ef"]);
  });

  it("come before the end and before an error", async () => {
    const ended = scriptedExchange();
    ended.read("ab", "cd", "ef");
    ended.end();
    const failed = scriptedExchange();
    failed.read("ab", "cd", "ef");
    failed.fail(new Error("broken"));
    await turn();
    expect(ended.recorder.calls.slice(2)).toEqual(["data", "end"]);
    expect(failed.recorder.calls.slice(2)).toEqual(["data", "error"]);
    expect([ended.recorder.body, failed.recorder.body]).toEqual(["abcdef", "abcdef"]);
  });

  it("come in the order of the calls where many are read in one turn", async () => {
    const order: string[] = [];
    const exchanges = ["a", "b", "c"].map((name) => {
      const scripted = scriptedExchange();
      scripted.recorder.on = (call) => order.push(name + call);
      return scripted;
    });
    for (const { read, end } of exchanges) {
      read("ab", "cd");
      end();
    }
    await turn();
    expect(order).toEqual(["adata", "aend", "bdata", "bend", "cdata", "cend"]);
  });

  it("are joined up to 64 KiB", async () => {
    const { recorder, read } = scriptedExchange();
    const chunk = "x".repeat(20_480);
    read(...Array.from({ length: 10 }, () => chunk));
    expect(recorder.chunks.map(({ length }) => length)).toEqual([61_440, 61_440, 61_440]);
    await turn();
    expect(recorder.body).toHaveLength(10 * 20_480);
  });

  it("keep the caller's AsyncLocalStorage", async () => {
    const storage = new AsyncLocalStorage<string>();
    const stores: unknown[] = [];
    const { recorder, read, end } = storage.run("caller", scriptedExchange);
    recorder.on = () => stores.push(storage.getStore());
    read("ab", "cd");
    await turn();
    read("ef");
    end();
    await turn();
    expect(stores).toEqual(["caller", "caller", "caller"]);
  });

  it("are dropped by an abort in the meantime", async () => {
    const { recorder, call, read } = scriptedExchange();
    read("ab", "cd");
    call.abort();
    await turn();
    expect(recorder.calls.slice(2)).toEqual([]);
  });

  it("fail the call where the handler throws, and the process lives", async () => {
    const { recorder, read } = scriptedExchange();
    read("ab", "cd");
    recorder.on = (name) => {
      if (name === "data") throw new Error("a bug");
    };
    await turn();
    expect(recorder.calls.slice(2)).toEqual(["data", "error"]);
    expect(recorder.error?.message).toBe("a bug");
  });
});

describe("a paused reader", () => {
  it("gets nothing that was to be joined, and all of it after, the end last", async () => {
    const { recorder, call, read, end } = scriptedExchange();
    read("ab", "cd");
    call.pause();
    read("ef");
    end();
    await turn();
    expect(recorder.chunks).toEqual([]);
    call.resume();
    await turn();
    expect(recorder.chunks.join("")).toBe("abcdef");
    expect(recorder.calls.at(-1)).toBe("end");
  });

  it("is told no end before it resumes", async () => {
    const { recorder, call, read, end } = scriptedExchange();
    recorder.on = (name) => {
      if (name === "data") call.pause();
    };
    read("ab", "cd", "ef");
    end();
    await turn();
    expect(recorder.calls.slice(2)).toEqual(["data"]);
    call.resume();
    call.resume();
    await turn();
    expect(recorder.calls.slice(2)).toEqual(["data", "end"]);
  });

  it("is told no end after an abort", async () => {
    const { recorder, call, read, end } = scriptedExchange();
    recorder.on = (name) => {
      if (name === "data") call.pause();
    };
    read("ab", "cd", "ef");
    end();
    await turn();
    call.resume();
    call.abort();
    await turn();
    expect(recorder.calls.slice(2)).toEqual(["data"]);
  });

  it("gets what came before an error", async () => {
    const { recorder, call, read, fail } = scriptedExchange();
    read("ab", "cd");
    call.pause();
    fail(new Error("broken"));
    expect(recorder.body).toBe("abcd");
    expect(recorder.calls.slice(2)).toEqual(["data", "error"]);
  });
});

describe("joined chunks", () => {
  it("never share a byte with those joined before or after", () => {
    fc.assert(
      fc.property(fc.array(fc.array(fc.nat(20_000), { minLength: 1, maxLength: 4 }), { maxLength: 40 }), (joins) => {
        let fill = 0;
        const made = joins.map((lengths) => {
          const parts = lengths.map((length) => Buffer.alloc(length + 1, ++fill));
          const joined = new JoinedChunks();
          for (const part of parts) joined.push(part);
          return { taken: joined.take(), expected: Buffer.concat(parts) };
        });
        for (const { taken, expected } of made) expect(expected.equals(taken)).toBe(true);
      }),
    );
  });
});
