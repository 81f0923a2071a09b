import { createServer } from "node:net";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { isConnectTimeout } from "../../src/upstream/network-error.js";
import { rawServer } from "./raw-server.js";
import { exchange, post, testClient } from "./recorder.js";

const coded = (code: string, more: object = {}): Error => Object.assign(new Error("x"), { code, ...more });

describe("isConnectTimeout", () => {
  it.each([
    ["undici's", coded("UND_ERR_CONNECT_TIMEOUT"), true],
    ["the system's", coded("ETIMEDOUT", { syscall: "connect" }), true],
    ["that of several addresses", new AggregateError([coded("ETIMEDOUT")]), true],
    ["one that is a cause", new Error("x", { cause: coded("UND_ERR_CONNECT_TIMEOUT") }), true],
    ["a connection that died", coded("ETIMEDOUT", { syscall: "read" }), false],
    ["a refused connection", new AggregateError([coded("ECONNREFUSED"), coded("ETIMEDOUT")]), false],
    ["a name that does not resolve", coded("ENOTFOUND"), false],
    ["a bad certificate", coded("DEPTH_ZERO_SELF_SIGNED_CERT"), false],
  ])("%s: %#", (_name, error, is) => {
    expect(isConnectTimeout(error)).toBe(is);
  });

  it("does not throw on anything", () => {
    const loop: { cause?: unknown } = {};
    loop.cause = loop;
    for (const odd of [undefined, null, 1, "x", {}, loop, { code: 5 }, Object.create(null)]) {
      expect(isConnectTimeout(odd)).toBe(false);
    }
  });
});

describe("what the network does", () => {
  it("arrives as refused where nobody listens", async () => {
    const server = createServer();
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, "close");
    const recorder = await exchange(testClient(), post(`http://127.0.0.1:${port}`));
    expect(recorder.calls).toEqual(["error"]);
    expect(recorder.error).toMatchObject({ code: "ECONNREFUSED" });
    expect(isConnectTimeout(recorder.error)).toBe(false);
  });

  it("arrives as not found for a name that does not resolve", async () => {
    const recorder = await exchange(testClient(), post("http://first-chunk.invalid"));
    expect(recorder.error).toMatchObject({ code: expect.stringMatching(/^(ENOTFOUND|EAI_AGAIN)$/) as string });
  });

  it("arrives as a connect timeout when a handshake is not answered", async () => {
    const server = await rawServer(() => undefined);
    const origin = server.origin.replace("http:", "https:");
    const recorder = await exchange(testClient(), post(origin, { connectTimeoutMs: 50 }));
    expect(isConnectTimeout(recorder.error)).toBe(true);
  });
});
