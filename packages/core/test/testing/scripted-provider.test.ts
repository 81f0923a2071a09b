import { request as httpRequest } from "node:http";
import { connect } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import {
  chunk,
  end,
  fin,
  flood,
  head,
  hold,
  json,
  noResponse,
  refusedUrl,
  reset,
  sse,
  startScriptedProvider,
  until,
} from "../../src/testing/index.js";
import type { ScriptedProvider, ScriptSource } from "../../src/testing/index.js";

let provider: ScriptedProvider | undefined;
afterEach(() => provider?.close());

async function started(script: ScriptSource): Promise<ScriptedProvider> {
  provider = await startScriptedProvider(script);
  return provider;
}

describe("scripted provider", () => {
  it("sends the head and the events, and ends", async () => {
    const { url } = await started(sse(["data: 1\n\n", "data: 2\n\n"], { headers: { "x-one": "1" } }));
    const response = await fetch(url);
    expect(response.status).toBe(200);
    expect(response.headers.get("x-one")).toBe("1");
    expect(await response.text()).toBe("data: 1\n\ndata: 2\n\n");
  });

  it("keeps what it was asked", async () => {
    const { url, requests } = await started(json(200, {}));
    await fetch(`${url}/v1/messages?beta=true`, { method: "POST", body: "héllo", headers: { "x-Case": "Yes" } });
    expect(requests).toHaveLength(1);
    expect(requests[0]).toMatchObject({ index: 0, method: "POST", path: "/v1/messages?beta=true" });
    expect(requests[0]?.headers["x-case"]).toBe("Yes");
    expect(requests[0]?.body.toString()).toBe("héllo");
  });

  it("answers each request by its index", async () => {
    const { url } = await started((_request, index) => json(index === 0 ? 503 : 200, { index }));
    expect((await fetch(url)).status).toBe(503);
    expect((await fetch(url)).status).toBe(200);
  });

  it("sends the head before the body is there", async () => {
    let go = (): void => {};
    const gate = new Promise<void>((resolve) => (go = resolve));
    const { url } = await started([head(200), until(() => gate), chunk("late"), end()]);
    const response = await fetch(url);
    go();
    expect(await response.text()).toBe("late");
  });

  it.each([
    ["reset", reset()],
    ["fin", fin()],
  ])("breaks the body with %s", async (_name, step) => {
    const { url } = await started([head(200), chunk("begun"), step]);
    const response = await fetch(url);
    await expect(response.text()).rejects.toThrow("terminated");
  });

  it("says nothing and sees the client leave", async () => {
    const server = await started(noResponse());
    const client = httpRequest(server.url).on("error", () => {});
    client.end();
    const request = await server.request(0);
    const leftAt = performance.now();
    client.destroy();
    const closed = await request.closed;
    expect(closed.byClient).toBe(true);
    expect(closed.at - leftAt).toBeLessThan(100);
    await request.scriptDone;
  });

  it("tells its own end of a connection from the client's", async () => {
    const server = await started([head(200), chunk("x"), reset()]);
    await fetch(server.url)
      .then((response) => response.text())
      .catch(() => {});
    expect((await (await server.request(0)).closed).byClient).toBe(false);
  });

  it("stops a flood when the client does not read", async () => {
    const server = await started([head(200), flood(Buffer.alloc(64 * 1024), 10_000), end()]);
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
    socket.pause();
    socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n");
    const request = await server.request(0);
    let before = -1;
    while (request.sentBytes !== before) {
      before = request.sentBytes;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect(before).toBeLessThan(10_000 * 64 * 1024);
    socket.destroy();
    await request.scriptDone;
  });

  it("destroys open connections when it closes", async () => {
    const server = await started([head(200), hold()]);
    const response = await fetch(server.url);
    await server.close();
    await expect(response.text()).rejects.toThrow("terminated");
    expect(server.openConnections).toBe(0);
  });

  it("shows a mistake in the script to the client", async () => {
    const { url } = await started(() => {
      throw new Error("wrong script");
    });
    const response = await fetch(url);
    expect(response.status).toBe(500);
    expect(await response.text()).toContain("wrong script");
  });

  it("gives an address that refuses connections", async () => {
    const url = await refusedUrl();
    await expect(fetch(url)).rejects.toThrow(
      expect.objectContaining({ cause: expect.objectContaining({ code: "ECONNREFUSED" }) }),
    );
  });
});
