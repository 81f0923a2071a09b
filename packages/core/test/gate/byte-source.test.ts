import { PassThrough } from "node:stream";
import { describe, expect, it } from "vitest";
import { gateStream } from "../../src/gate/gate-stream.js";
import { anthropicHealthy, ManualClock, startScriptedProvider, head, hold } from "../../src/testing/index.js";

function latch(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}

const options = { protocol: "anthropic-messages", ttftTimeoutMs: 1000 } as const;

describe("a source that is left while it is silent", () => {
  it("is cancelled where it is a web stream", async () => {
    const clock = new ManualClock();
    const cancelled = latch();
    const source = new ReadableStream<Uint8Array>({ cancel: () => cancelled.resolve() });
    const pending = gateStream(source, { ...options, clock });
    await clock.advance(1000);
    expect((await pending).status).toBe("rejected");
    await cancelled.promise;
  });

  it("is destroyed where it is a Node stream", async () => {
    const clock = new ManualClock();
    const source = new PassThrough();
    const pending = gateStream(source, { ...options, clock });
    await clock.advance(1000);
    expect((await pending).status).toBe("rejected");
    expect(source.destroyed).toBe(true);
  });

  it("loses its connection where it is the body of a fetch", async () => {
    const provider = await startScriptedProvider([head(200, { "content-type": "text/event-stream" }), hold()]);
    try {
      const { body } = await fetch(provider.url);
      const result = await gateStream(body as ReadableStream<Uint8Array>, { ...options, ttftTimeoutMs: 20 });
      expect(result).toMatchObject({ status: "rejected", error: { code: "ttft_timeout" } });
      expect(await (await provider.request(0)).closed).toMatchObject({ byClient: true });
    } finally {
      await provider.close();
    }
  });

  it("is left when the reader of a released body leaves", async () => {
    const cancelled = latch();
    const source = new ReadableStream<Uint8Array>({
      start: (controller) =>
        anthropicHealthy()
          .slice(0, 5)
          .forEach((event) => controller.enqueue(Buffer.from(event))),
      cancel: () => cancelled.resolve(),
    });
    const result = await gateStream(source, { protocol: "anthropic-messages" });
    if (result.status === "released") for await (const _ of result.body) break;
    await cancelled.promise;
  });
});
