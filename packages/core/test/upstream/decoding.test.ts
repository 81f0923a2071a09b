import * as zlib from "node:zlib";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodingClient, isUndecodableBody } from "../../src/upstream/decoding.js";
import type { ResponseHeaders } from "../../src/response-headers.js";
import type { UpstreamCall, UpstreamClient, UpstreamHandler } from "../../src/upstream/upstream.js";

/** The network side, played by the test. */
class Wire implements UpstreamClient, UpstreamCall {
  handler!: UpstreamHandler;
  aborted = false;
  paused = false;
  readonly resumed: Promise<void>;
  #resumed: () => void = () => undefined;

  constructor() {
    this.resumed = new Promise((resolve) => (this.#resumed = resolve));
  }
  send(_request: unknown, handler: UpstreamHandler): UpstreamCall {
    this.handler = handler;
    return this;
  }
  close(): Promise<void> {
    return Promise.resolve();
  }
  abort(): void {
    this.aborted = true;
  }
  pause(): void {
    this.paused = true;
  }
  resume(): void {
    this.paused = false;
    this.#resumed();
  }
}

class Reader implements UpstreamHandler {
  headers: ResponseHeaders | undefined;
  readonly chunks: string[] = [];
  bytes = 0;
  calls = 0;
  #wake: () => void = () => undefined;
  readonly over: Promise<Error | "end">;
  #end: (how: Error | "end") => void = () => undefined;

  constructor() {
    this.over = new Promise((resolve) => (this.#end = resolve));
  }
  get text(): string {
    return this.chunks.join("");
  }
  onConnected(): void {}
  onHead(_status: number, headers: ResponseHeaders): void {
    this.headers = headers;
  }
  onData(chunk: Uint8Array): void {
    this.calls += 1;
    this.bytes += chunk.length;
    if (this.bytes < 100_000) this.chunks.push(Buffer.from(chunk).toString());
    this.#wake();
  }
  onEnd(): void {
    this.#end("end");
  }
  onError(error: Error): void {
    this.#end(error);
  }
  async until(text: string): Promise<void> {
    while (!this.text.includes(text)) await new Promise<void>((resolve) => (this.#wake = resolve));
  }
}

function exchange(encoding: string | string[] | undefined): { wire: Wire; reader: Reader; call: UpstreamCall } {
  const wire = new Wire();
  const reader = new Reader();
  const call = decodingClient(wire).send(
    { method: "POST", origin: "http://x", path: "/", headers: [], connectTimeoutMs: 1 },
    reader,
  );
  wire.handler.onHead(200, {
    "content-type": "text/event-stream",
    "content-length": "9",
    "content-encoding": encoding,
  });
  return { wire, reader, call };
}

const text = `data: ${"The quick brown fox. ".repeat(40)}\n\n`;
const encoded: readonly (readonly [string, Buffer])[] = [
  ["gzip", zlib.gzipSync(text)],
  ["x-gzip", zlib.gzipSync(text)],
  ["GZIP", zlib.gzipSync(text)],
  ["identity, gzip", zlib.gzipSync(text)],
  ["deflate", zlib.deflateSync(text)],
  ["deflate", zlib.deflateRawSync(text)],
  ["br", zlib.brotliCompressSync(text)],
];
const zstdCompressSync = (zlib as { zstdCompressSync?: (text: string) => Buffer }).zstdCompressSync;

describe("a compressed answer", () => {
  it.each(encoded)("in %s is decoded, and its header dropped", async (encoding, bytes) => {
    const { wire, reader } = exchange(encoding);
    wire.handler.onData(bytes);
    wire.handler.onEnd();
    expect(await reader.over).toBe("end");
    expect(reader.text).toBe(text);
    expect(reader.headers).toEqual({ "content-type": "text/event-stream" });
  });

  it.runIf(zstdCompressSync !== undefined)("in zstd is decoded where Node can", async () => {
    const { wire, reader } = exchange("zstd");
    wire.handler.onData(zstdCompressSync?.(text) as Buffer);
    wire.handler.onEnd();
    expect(await reader.over).toBe("end");
    expect(reader.text).toBe(text);
  });

  it("is the same however it is split", async () => {
    const places = fc.array(fc.nat(400), { maxLength: 20 });
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...encoded), places, async ([encoding, bytes], cuts) => {
        const { wire, reader } = exchange(encoding);
        const edges = [0, ...cuts.map((cut) => cut % bytes.length).toSorted((a, b) => a - b), bytes.length];
        for (const [index, edge] of edges.slice(1).entries()) wire.handler.onData(bytes.subarray(edges[index], edge));
        wire.handler.onEnd();
        expect(await reader.over).toBe("end");
        expect(reader.text).toBe(text);
      }),
      { numRuns: 60 },
    );
  });

  const flushing = [
    ["gzip", () => zlib.createGzip(), zlib.constants.Z_SYNC_FLUSH],
    ["deflate", () => zlib.createDeflate(), zlib.constants.Z_SYNC_FLUSH],
    ["br", () => zlib.createBrotliCompress(), zlib.constants.BROTLI_OPERATION_FLUSH],
  ] as const;

  it.each(flushing)("in %s comes event by event, as the provider flushes", async (encoding, create, kind) => {
    const { wire, reader } = exchange(encoding);
    const compressor = create();
    compressor.on("data", (chunk: Buffer) => wire.handler.onData(chunk));
    for (const event of ["data: one\n\n", "data: two\n\n", "data: three\n\n"]) {
      compressor.write(event);
      compressor.flush(kind);
      await reader.until(event);
    }
    compressor.destroy();
    expect(reader.text).toBe("data: one\n\ndata: two\n\ndata: three\n\n");
  });

  it("of several members is decoded to the last", async () => {
    const { wire, reader } = exchange("gzip");
    wire.handler.onData(Buffer.concat([zlib.gzipSync("one "), zlib.gzipSync("two")]));
    wire.handler.onEnd();
    expect(await reader.over).toBe("end");
    expect(reader.text).toBe("one two");
  });

  it("may have bytes after its end, which are dropped", async () => {
    const { wire, reader } = exchange("gzip");
    wire.handler.onData(Buffer.concat([zlib.gzipSync("one"), Buffer.alloc(100)]));
    await reader.until("one");
    wire.handler.onData(Buffer.from("more"));
    wire.handler.onEnd();
    expect(await reader.over).toBe("end");
    expect(reader.text).toBe("one");
  });

  it.each(encoded)("in %s that is cut short breaks, after what could be decoded", async (encoding, bytes) => {
    const { wire, reader } = exchange(encoding);
    wire.handler.onData(bytes.subarray(0, bytes.length - 9));
    wire.handler.onEnd();
    const error = await reader.over;
    expect(error).toBeInstanceOf(Error);
    expect(isUndecodableBody(error)).toBe(false);
  });

  it("that the network cuts short ends with the network's error", async () => {
    const { wire, reader } = exchange("gzip");
    const reset = new Error("read ECONNRESET");
    wire.handler.onData(zlib.gzipSync(text).subarray(0, 60));
    wire.handler.onError(reset);
    expect(await reader.over).toBe(reset);
    expect(text.startsWith(reader.text)).toBe(true);
    expect(reader.text).not.toBe("");
  });

  it("without a body just ends", async () => {
    const { wire, reader } = exchange("gzip");
    wire.handler.onEnd();
    expect(await reader.over).toBe("end");
  });

  it.each(["gzip", "deflate", "br"])("that is no %s breaks at once", async (encoding) => {
    const { wire, reader } = exchange(encoding);
    wire.handler.onData(Buffer.from("data: plain text\n\n"));
    expect(isUndecodableBody(await reader.over)).toBe(true);
    expect(wire.aborted).toBe(true);
  });

  it.each(["gzip, gzip", "br, gzip", "compress", "zip", "aws-chunked"])("in %s is left as it is", (encoding) => {
    const { wire, reader } = exchange(encoding);
    wire.handler.onData(Buffer.from("bytes"));
    expect(reader.text).toBe("bytes");
    expect(reader.headers?.["content-encoding"]).toBe(encoding);
  });
});

describe("a bomb", () => {
  it.each([
    ["gzip", zlib.gzipSync(Buffer.alloc(64 * 1024 * 1024))],
    [
      "br",
      zlib.brotliCompressSync(Buffer.alloc(64 * 1024 * 1024), { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } }),
    ],
  ] as const)("in %s breaks soon after its first MiB", async (encoding, bomb) => {
    const { wire, reader } = exchange(encoding);
    wire.handler.onData(bomb);
    expect(isUndecodableBody(await reader.over)).toBe(true);
    expect(wire.aborted).toBe(true);
    expect(reader.bytes).toBeLessThan(Math.max(2 * 1024 * 1024, bomb.length * 201));
  });
});

describe("a reader that is slow", () => {
  it("stops the decoder and the network, and loses nothing", async () => {
    const { wire, reader, call } = exchange("gzip");
    const long = Buffer.from(Array.from({ length: 60_000 }, (_, index) => `${index * 7919} `).join(""));
    call.pause();
    const bytes = zlib.gzipSync(long);
    for (let at = 0; at < bytes.length; at += 8_192) wire.handler.onData(bytes.subarray(at, at + 8_192));
    await new Promise((resolve) => setImmediate(resolve));
    expect([reader.bytes, wire.paused]).toEqual([0, true]);
    call.resume();
    await wire.resumed;
    wire.handler.onEnd();
    expect(await reader.over).toBe("end");
    expect([reader.bytes, wire.paused]).toEqual([long.length, false]);
  });

  it("that leaves hears nothing more", async () => {
    const { wire, reader, call } = exchange("gzip");
    wire.handler.onData(zlib.gzipSync(text));
    call.abort();
    wire.handler.onData(Buffer.from("late"));
    wire.handler.onEnd();
    await new Promise((resolve) => setImmediate(resolve));
    expect([reader.calls, wire.aborted]).toEqual([0, true]);
  });
});

describe("an answer that is not compressed", () => {
  it.each([undefined, "", "identity", "Identity"])("goes through untouched: %s", (encoding) => {
    const { wire, reader } = exchange(encoding);
    wire.handler.onData(Buffer.from("plain"));
    expect(reader.text).toBe("plain");
    expect(reader.headers?.["content-length"]).toBe("9");
  });

  it("is aborted and paused although its calls come before it is sent", () => {
    const wire = new Wire();
    const eager: UpstreamClient = {
      close: () => Promise.resolve(),
      send: (_request, handler) => {
        handler.onHead(200, {});
        handler.onData(Buffer.from("x"));
        return wire;
      },
    };
    const reader = new Reader();
    decodingClient(eager)
      .send({ method: "POST", origin: "http://x", path: "/", headers: [], connectTimeoutMs: 1 }, reader)
      .abort();
    expect([reader.text, wire.aborted]).toEqual(["x", true]);
  });
});
