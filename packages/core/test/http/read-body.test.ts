import { gzipSync, brotliCompressSync, deflateSync } from "node:zlib";
import type { IncomingMessage } from "node:http";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../src/clock.js";
import type { Clock } from "../../src/clock.js";
import type { BodyOutcome } from "../../src/http/body-outcome.js";
import type { ParsedSource } from "../../src/http/read-body.js";
import { readRequestBody } from "../../src/http/read-body.js";
import { ManualClock } from "../../src/testing/manual-clock.js";
import { RawClient } from "../../src/testing/contract/raw-client.js";
import type { RawRequest } from "../../src/testing/contract/raw-client.js";
import { serving } from "./serving.js";

const limit = 1000;

interface Setup {
  readonly clock?: Clock;
  /** What the host does before. */
  readonly before?: (req: IncomingMessage) => Promise<ParsedSource | void>;
}

/** Sends the request and reads its body in a server. */
async function read(request: Partial<RawRequest>, setup: Setup = {}): Promise<BodyOutcome & { client: RawClient }> {
  const { outcome, client } = await start(request, setup);
  return { ...(await outcome), client };
}

async function start(request: Partial<RawRequest>, { clock, before }: Setup = {}) {
  let settle: (outcome: BodyOutcome) => void;
  const outcome = new Promise<BodyOutcome>((resolve) => (settle = resolve));
  const url = await serving(async (req, res) => {
    const source = (await before?.(req)) ?? {};
    const onBody = (body: BodyOutcome): void => {
      settle(body);
      res.end();
    };
    readRequestBody(req, { limit, source, clock: clock ?? systemClock }, { onBody });
  });
  const headers = { "content-type": "application/json", ...request.headers };
  return { outcome, client: await RawClient.send(url, { path: "/", ...request, headers }) };
}

const drain = async (req: IncomingMessage): Promise<void> => {
  for await (const _ of req);
};

const textOf = (outcome: BodyOutcome): string | undefined =>
  "body" in outcome && outcome.body instanceof Uint8Array ? Buffer.from(outcome.body).toString() : undefined;

const codeOf = (outcome: BodyOutcome): [number, string] | undefined =>
  "failure" in outcome ? [outcome.failure.status, outcome.failure.code] : undefined;

describe("an unread body", () => {
  it("is read as it came", async () => {
    const body = '{ "seed": 12345678901234567890, "seed": 1 }';
    expect(textOf(await read({ body }))).toBe(body);
  });

  it("is read when it comes chunked", async () => {
    expect(textOf(await read({ body: "{}", chunked: true }))).toBe("{}");
  });

  it("is preferred to what a parser left", async () => {
    expect(textOf(await read({ body: "{}" }, { before: async () => ({ body: { other: 1 } }) }))).toBe("{}");
  });

  it("is no body where there is none", async () => {
    expect(await read({ method: "GET", headers: { "content-type": "text/html" } })).toMatchObject({ body: undefined });
  });

  it("may be as long as the limit", async () => {
    expect(textOf(await read({ body: "x".repeat(limit), chunked: true }))).toHaveLength(limit);
  });

  it.each([false, true])("is refused beyond the limit (chunked: %s)", async (chunked) => {
    expect(codeOf(await read({ body: "x".repeat(limit + 1), chunked }))).toEqual([413, "request_too_large"]);
  });

  it("is an abort when the client leaves before its end", async () => {
    const { outcome, client } = await start({ headers: { "content-length": "10" } });
    client.socket.write("12345", () => client.leave());
    expect(codeOf(await outcome)).toEqual([499, "client_closed_request"]);
  });

  it("is an abort when the client has left before it is read", async () => {
    const before = (req: IncomingMessage): Promise<void> => new Promise((resolve) => req.once("close", resolve));
    const { outcome, client } = await start({ headers: { "content-length": "10" } }, { before });
    client.leave();
    expect(codeOf(await outcome)).toEqual([499, "client_closed_request"]);
  });
});

it("starts no timer for a body that comes with its head", async () => {
  const clock = new ManualClock();
  let timers = 0;
  const counting = {
    now: () => clock.now(),
    setTimer: (at: number, call: () => void) => (timers++, clock.setTimer(at, call)),
  };
  expect(textOf(await read({ body: "{}" }, { clock: counting }))).toBe("{}");
  await new Promise((resolve) => setImmediate(resolve));
  expect(timers).toBe(0);
});

describe("a slow body", () => {
  const slow = async (clock: ManualClock) => {
    let begun: (req: IncomingMessage) => void;
    const req = new Promise<IncomingMessage>((resolve) => (begun = resolve));
    const before = async (incoming: IncomingMessage): Promise<void> => begun(incoming);
    const { outcome, client } = await start({ headers: { "content-length": "1000" } }, { clock, before });
    await req;
    await clock.advance(0);
    return { outcome, client, req: await req };
  };

  it("is refused, also when it drips", async () => {
    const clock = new ManualClock();
    const { outcome, client, req } = await slow(clock);
    for (let second = 0; second < 30; second += 1) {
      const came = new Promise((resolve) => req.once("data", resolve));
      client.socket.write("x");
      await came;
      await clock.advance(1000);
    }
    expect(codeOf(await outcome)).toEqual([408, "request_body_timeout"]);
  });

  it("leaves no timer behind", async () => {
    const clock = new ManualClock();
    const { outcome, client } = await slow(clock);
    expect(clock.pending).toBe(1);
    client.socket.write("x".repeat(1000));
    expect(textOf(await outcome)).toHaveLength(1000);
    expect(clock.pending).toBe(0);
  });
});

describe("a body that a parser has read", () => {
  const body = '{"a":1}';
  const after = (source: ParsedSource) => ({ before: async (req: IncomingMessage) => (await drain(req), source) });

  it.each([
    ["rawBody bytes", { rawBody: Buffer.from(body), body: {} }],
    ["rawBody text", { rawBody: body, body: {} }],
    ["body bytes", { body: Buffer.from(body) }],
    ["body text", { body }],
  ])("is taken from %s", async (_, source) => {
    expect(textOf(await read({ body }, after(source)))).toBe(body);
  });

  it.each([[{ a: 1 }], [{}], [null], [[]], [0]])("is taken as the parsed value %j", async (parsed) => {
    expect(await read({ body }, after({ body: parsed }))).toMatchObject({ body: { parsed } });
  });

  it("is not decoded again", async () => {
    const headers = { "content-encoding": "gzip" };
    expect(textOf(await read({ body: gzipSync(body), headers }, after({ rawBody: body })))).toBe(body);
  });

  it("is a failure where nothing was kept, not a wait", async () => {
    expect(codeOf(await read({ body }, after({})))).toEqual([500, "request_body_consumed"]);
  });

  it("is refused beyond the limit", async () => {
    expect(codeOf(await read({ body }, after({ rawBody: "x".repeat(limit + 1) })))).toEqual([413, "request_too_large"]);
  });

  it("is no body where none was sent", async () => {
    expect(await read({ body: "" }, after({ body: {} }))).toMatchObject({ body: undefined });
  });

  it("is never a form, however it was parsed", async () => {
    const headers = { "content-type": "multipart/form-data; boundary=x" };
    expect(codeOf(await read({ body, headers }, after({ body: { a: "1" } })))).toEqual([415, "unsupported_media_type"]);
  });
});

describe("the content type", () => {
  it.each(["application/json", "Application/JSON; charset=UTF-8", "application/vnd.api+json", ""])(
    "may be %j",
    async (type) => {
      expect(textOf(await read({ body: "{}", headers: { "content-type": type } }))).toBe("{}");
    },
  );

  it.each(["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx"])(
    "may not be %s",
    async (type) => {
      expect(codeOf(await read({ body: "{}", headers: { "content-type": type } }))?.[0]).toBe(415);
    },
  );

  it("may not name another charset", async () => {
    const headers = { "content-type": 'application/json; charset="utf-16"' };
    expect(codeOf(await read({ body: "{}", headers }))).toEqual([415, "unsupported_charset"]);
  });
});

describe("the content encoding", () => {
  const encoded = (encoding: string, body: Uint8Array) => read({ body, headers: { "content-encoding": encoding } });

  it.each([
    ["gzip", gzipSync("{}")],
    ["deflate", deflateSync("{}")],
    ["br", brotliCompressSync("{}")],
    ["identity", Buffer.from("{}")],
  ])("%s is undone", async (encoding, body) => {
    expect(textOf(await encoded(encoding, body))).toBe("{}");
  });

  it("is limited in what it unpacks to", async () => {
    expect(codeOf(await encoded("gzip", gzipSync("x".repeat(limit + 1))))).toEqual([413, "request_too_large"]);
  });

  it("may be one layer only", async () => {
    expect(codeOf(await encoded("gzip, gzip", gzipSync(gzipSync("{}"))))?.[0]).toBe(415);
  });

  it("must be the one that was used", async () => {
    expect(codeOf(await encoded("gzip", Buffer.from("{}")))).toEqual([400, "invalid_content_encoding"]);
  });
});
