import { describe, expect, it } from "vitest";
import { okAnswer, okHead, rawServer } from "./raw-server.js";
import { exchange, post, Recorder, settle, testClient } from "./recorder.js";

async function msUntil(event: Promise<void>): Promise<number> {
  const start = performance.now();
  await event;
  return performance.now() - start;
}

describe("abort", () => {
  it.each([
    ["before the head", ""],
    ["after the head", `${okHead}transfer-encoding: chunked\r\n\r\n`],
    ["in the body", `${okHead}transfer-encoding: chunked\r\n\r\n2\r\nab\r\n`],
  ])("closes the connection within 50 ms %s, and nothing is called any more", async (_, answer) => {
    const server = await rawServer(({ socket }) => void (answer !== "" && socket.write(answer)));
    const recorder = new Recorder();
    const call = testClient().send(post(server.origin), recorder);
    await recorder.called(answer.endsWith("ab\r\n") ? "data" : answer === "" ? "connected" : "head");
    const before = [...recorder.calls];
    const { closed } = await server.connection(0);
    call.abort();
    call.abort();
    expect(await msUntil(closed)).toBeLessThan(50);
    await settle();
    expect(recorder.calls).toEqual(before);
  });

  it("opens no connection in place of the one that was closed", async () => {
    const server = await rawServer(() => undefined);
    const recorder = new Recorder();
    const call = testClient().send(post(server.origin), recorder);
    await recorder.called("connected");
    const { closed } = await server.connection(0);
    call.abort();
    await closed;
    await settle(50);
    expect(server.connections).toHaveLength(1);
  });

  it("before the connection exists starts no request", async () => {
    const server = await rawServer(() => undefined);
    const recorder = new Recorder();
    const call = testClient().send(post(server.origin), recorder);
    call.abort();
    await settle(100);
    expect(recorder.calls).toEqual([]);
    expect(server.connections.map(({ received }) => received).join("")).toBe("");
  });

  it("during a TLS handshake closes the connection within 50 ms", async () => {
    const server = await rawServer(() => undefined);
    const recorder = new Recorder();
    const call = testClient().send(post(server.origin.replace("http:", "https:")), recorder);
    const { closed } = await server.connection(0);
    call.abort();
    expect(await msUntil(closed)).toBeLessThan(50);
    expect(recorder.calls).toEqual([]);
  });

  it("while an idle connection is being checked starts no request", async () => {
    const server = await rawServer(({ socket }) => socket.write(okAnswer));
    const client = testClient();
    await exchange(client, post(server.origin));
    await settle();
    const recorder = new Recorder();
    client.send(post(server.origin), recorder).abort();
    await settle();
    expect(recorder.calls).toEqual([]);
    expect(server.requests).toBe(1);
  });

  it.each(["connected", "head", "data"])("from within the %s call ends the calls there", async (name) => {
    // With its end in the same read the answer would be over, and its connection free, before it is handed over.
    const begun = `${okHead}transfer-encoding: chunked\r\n\r\n2\r\nab\r\n`;
    const server = await rawServer(({ socket }) => socket.write(begun));
    const recorder = new Recorder();
    const call = testClient().send(post(server.origin), recorder);
    recorder.on = (called) => {
      if (called === name) call.abort();
    };
    await (
      await server.connection(0)
    ).closed;
    await settle();
    expect(recorder.calls.at(-1)).toBe(name);
    if (name === "connected") expect(server.connections[0]?.received).toBe("");
  });

  it("leaves the pool usable", async () => {
    const server = await rawServer(({ socket }, _, index) => void (index > 0 && socket.write(okAnswer)));
    const client = testClient();
    const recorder = new Recorder();
    const call = client.send(post(server.origin), recorder);
    await recorder.called("connected");
    call.abort();
    expect((await exchange(client, post(server.origin))).body).toBe("ok");
  });
});
