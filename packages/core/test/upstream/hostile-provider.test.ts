import { describe, expect, it } from "vitest";
import { okAnswer, okHead, rawServer } from "./raw-server.js";
import { exchange, post, settle, testClient } from "./recorder.js";

const chunked = `${okHead}transfer-encoding: chunked\r\n\r\n`;

/** Answer, then how the exchange goes. The connection is closed after the answer unless `open` is set. */
const answers: { name: string; answer: string; calls: string[]; code?: string; open?: true }[] = [
  { name: "no answer", answer: "", calls: ["connected", "error"], code: "UND_ERR_SOCKET" },
  { name: "no HTTP", answer: "SSH-2.0-OpenSSH\r\n", calls: ["connected", "error"], code: "HTTPParserError" },
  {
    name: "304 with a length",
    answer: "HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n",
    calls: ["connected", "head", "error"],
    code: "UND_ERR_RES_CONTENT_LENGTH_MISMATCH",
    open: true,
  },
  {
    name: "204 with a length",
    answer: "HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n",
    calls: ["connected", "head", "error"],
    code: "UND_ERR_RES_CONTENT_LENGTH_MISMATCH",
    open: true,
  },
  { name: "204", answer: "HTTP/1.1 204 No Content\r\n\r\n", calls: ["connected", "head", "end"], open: true },
  {
    name: "an unasked 100 Continue",
    answer: `HTTP/1.1 100 Continue\r\n\r\n${okAnswer}`,
    calls: ["connected", "error"],
    code: "UND_ERR_SOCKET",
    open: true,
  },
  {
    name: "an unasked protocol switch",
    answer: "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
    calls: ["connected", "error"],
    code: "UND_ERR_SOCKET",
    open: true,
  },
  {
    name: "40 KiB of headers",
    answer: `${okHead}x: ${"a".repeat(40_960)}\r\ncontent-length: 0\r\n\r\n`,
    calls: ["connected", "error"],
    code: "UND_ERR_HEADERS_OVERFLOW",
    open: true,
  },
  {
    name: "20 KiB of headers",
    answer: `${okHead}x: ${"a".repeat(20_480)}\r\ncontent-length: 0\r\n\r\n`,
    calls: ["connected", "head", "end"],
    open: true,
  },
  {
    name: "a short body",
    answer: `${okHead}content-length: 5\r\n\r\nab`,
    calls: ["connected", "head", "data", "error"],
    code: "UND_ERR_SOCKET",
  },
  {
    name: "a short body on a connection that is to close",
    answer: `${okHead}connection: close\r\ncontent-length: 5\r\n\r\nab`,
    calls: ["connected", "head", "data", "error"],
    code: "UND_ERR_RES_CONTENT_LENGTH_MISMATCH",
  },
  {
    name: "chunks without a last one",
    answer: `${chunked}2\r\nab\r\n`,
    calls: ["connected", "head", "data", "error"],
    code: "UND_ERR_SOCKET",
  },
  {
    name: "a broken chunk size",
    answer: `${chunked}2\r\nab\r\nzz\r\n`,
    calls: ["connected", "head", "data", "error"],
    code: "HTTPParserError",
    open: true,
  },
  {
    name: "a length and chunks",
    answer: `${okHead}content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n`,
    calls: ["connected", "error"],
    code: "UND_ERR_RES_CONTENT_LENGTH_MISMATCH",
    open: true,
  },
  {
    name: "a body that ends with the connection",
    answer: "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nab",
    calls: ["connected", "head", "data", "end"],
  },
  {
    name: "trailers",
    answer: `${chunked}2\r\nab\r\n0\r\nx-t: 1\r\n\r\n`,
    calls: ["connected", "head", "data", "end"],
    open: true,
  },
];

/** undici 7 leaves out the code of its parser. */
function nameOf(error: (Error & { readonly code?: string }) | undefined): string | undefined {
  return error?.code ?? error?.name;
}

describe("a provider that answers with", () => {
  it.each(answers)("$name ends the call exactly once", async ({ answer, calls, code, open }) => {
    const server = await rawServer(({ socket }) => {
      if (open === true) socket.write(answer);
      else socket.end(answer);
    });
    const recorder = await exchange(testClient(), post(server.origin));
    await settle();
    expect(recorder.calls).toEqual(calls);
    if (code === undefined) expect(recorder.error).toBeUndefined();
    else expect(nameOf(recorder.error)).toBe(code);
  });

  it("an answer nobody asked for poisons no later request", async () => {
    const server = await rawServer(({ socket }, _, index) =>
      socket.write(index === 0 ? `${okAnswer}${okHead}content-length: 4\r\n\r\nevil` : okAnswer),
    );
    const client = testClient();
    await exchange(client, post(server.origin));
    await settle();
    const recorder = await exchange(client, post(server.origin));
    expect(recorder).toMatchObject({ status: 200, body: "ok" });
  });
});

describe("a request that cannot be sent", () => {
  it.each([
    ["a line break in a header", { headers: ["x-a", "1\r\nx-b: 2"] }],
    ["a header of the connection", { headers: ["transfer-encoding", "chunked"] }],
    ["a space in the path", { path: "/a b" }],
    ["a wrong method", { method: "PO ST" }],
    ["a length that is not the body's", { headers: ["content-length", "7"] }],
  ])("with %s ends at onError, later, and nothing is sent", async (_, overrides) => {
    const server = await rawServer(({ socket }) => socket.write(okAnswer));
    const client = testClient();
    const pending = exchange(client, post(server.origin, overrides));
    const recorder = await pending;
    expect(recorder.calls.filter((name) => name !== "connected")).toEqual(["error"]);
    expect(server.connections.map(({ received }) => received).join("")).toBe("");
    expect((await exchange(client, post(server.origin))).body).toBe("ok");
  });

  it("does not use up a connection", async () => {
    const server = await rawServer(({ socket }) => socket.write(okAnswer));
    const client = testClient();
    await exchange(client, post(server.origin));
    await settle();
    for (let i = 0; i < 20; i++) await exchange(client, post(server.origin, { headers: ["x", "\n"] }));
    await exchange(client, post(server.origin));
    expect(server.connections).toHaveLength(1);
  });

  it("to an origin that is none ends at onError", async () => {
    const recorder = await exchange(testClient(), post("nonsense"));
    expect(recorder.calls).toEqual(["error"]);
  });
});
