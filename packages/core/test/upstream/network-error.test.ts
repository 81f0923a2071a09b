import { createServer } from "node:net";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { classifyNetworkError } from "../../src/upstream/network-error.js";
import { rawServer } from "./raw-server.js";
import { exchange, post, testClient } from "./recorder.js";

const coded = (code: string, more: object = {}): Error => Object.assign(new Error("x"), { code, ...more });

describe("classifyNetworkError", () => {
  it.each([
    ["UND_ERR_CONNECT_TIMEOUT", "connect-timeout"],
    ["ECONNREFUSED", "network"],
    ["ENOTFOUND", "network"],
    ["EAI_AGAIN", "network"],
    ["ECONNRESET", "network"],
    ["EPIPE", "network"],
    ["UND_ERR_SOCKET", "network"],
    ["HPE_INVALID_CONSTANT", "network"],
    ["UND_ERR_RES_CONTENT_LENGTH_MISMATCH", "network"],
    ["UND_ERR_HEADERS_OVERFLOW", "network"],
    ["DEPTH_ZERO_SELF_SIGNED_CERT", "network"],
    ["ERR_TLS_CERT_ALTNAME_INVALID", "network"],
  ])("takes %s for %s", (code, kind) => {
    expect(classifyNetworkError(coded(code))).toEqual({ kind, code });
  });

  it("takes the kernel's connect timeout for one, and a dead connection not", () => {
    expect(classifyNetworkError(coded("ETIMEDOUT", { syscall: "connect" })).kind).toBe("connect-timeout");
    expect(classifyNetworkError(coded("ETIMEDOUT", { syscall: "read" })).kind).toBe("network");
  });

  it("looks into aggregates and causes", () => {
    expect(classifyNetworkError(new AggregateError([coded("ECONNREFUSED")])).code).toBe("ECONNREFUSED");
    expect(classifyNetworkError(new Error("x", { cause: coded("EPIPE") })).code).toBe("EPIPE");
  });

  it("does not throw on anything", () => {
    const loop: { cause?: unknown } = {};
    loop.cause = loop;
    for (const odd of [undefined, null, 1, "x", {}, loop, { code: 5 }, Object.create(null)]) {
      expect(classifyNetworkError(odd)).toEqual({ kind: "network", code: "UNKNOWN" });
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
    expect(classifyNetworkError(recorder.error)).toEqual({ kind: "network", code: "ECONNREFUSED" });
  });

  it("arrives as not found for a name that does not resolve", async () => {
    const recorder = await exchange(testClient(), post("http://first-chunk.invalid"));
    expect(classifyNetworkError(recorder.error).code).toMatch(/^(ENOTFOUND|EAI_AGAIN)$/);
  });

  it("arrives as a connect timeout when a handshake is not answered", async () => {
    const server = await rawServer(() => undefined);
    const origin = server.origin.replace("http:", "https:");
    const recorder = await exchange(testClient(), post(origin, { connectTimeoutMs: 50 }));
    expect(classifyNetworkError(recorder.error)).toEqual({
      kind: "connect-timeout",
      code: "UND_ERR_CONNECT_TIMEOUT",
    });
  });
});
