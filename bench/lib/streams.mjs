/**
 * The scripted streams. Provider and load client both make them from this file, so that the client can compare every
 * byte that it gets with the byte that was sent.
 *
 * A stream is asked for by its model name, `kind` or `kind.count`. The model is the one thing in a request that every
 * subject passes on.
 */

/** Content events of a short stream; a finish reason, usage and `[DONE]` follow. */
const SHORT_EVENTS = 20;
/** Content events of a bulk stream, before the same three. */
const BULK_EVENTS = 5000;
/** Between the events of a paced stream, in ms. */
export const PACE_MS = 20;
/** Longest life of an idle stream, in ms: every stream ends by itself, whatever becomes of the run. */
export const IDLE_LIMIT_MS = 180_000;

const id = "chatcmpl-Bq7ZtM4wX1nYc8LkR2vP";
const words = ["latency", "gateway", "quiet", "river", "stone", "window", "amber", "signal"];

/** @param {Record<string, unknown>} choice @param {string} [rest] */
function chat(choice, rest = "") {
  const head = `{"id":"${id}","object":"chat.completion.chunk","created":1764400000,"model":"gpt-5.1","system_fingerprint":"fp_9c1f0a"`;
  return Buffer.from(`data: ${head},"choices":[${JSON.stringify(choice)}]${rest}}\n\n`);
}

/** @param {number} index */
function content(index) {
  const delta = { content: ` ${words[index % words.length]}` };
  return chat({ index: 0, delta, logprobs: null, finish_reason: null });
}

/** @param {number} count @returns {Buffer[]} */
function contents(count) {
  return Array.from({ length: count }, (_, index) => content(index));
}

function role() {
  return chat({
    index: 0,
    delta: { role: "assistant", content: "", refusal: null },
    logprobs: null,
    finish_reason: null,
  });
}

/** @param {number} tokens @returns {Buffer[]} */
function closing(tokens) {
  const usage = `,"usage":{"prompt_tokens":212,"completion_tokens":${tokens},"total_tokens":${212 + tokens}}`;
  return [
    chat({ index: 0, delta: {}, logprobs: null, finish_reason: "stop" }),
    chat({ index: 0, delta: {}, logprobs: null, finish_reason: null }, usage),
    Buffer.from("data: [DONE]\n\n"),
  ];
}

/** @param {string} name @param {Record<string, unknown>} data */
function anthropic(name, data) {
  return Buffer.from(`event: ${name}\ndata: ${JSON.stringify({ type: name, ...data })}\n\n`);
}

/** @param {number} count @returns {Buffer[]} */
function anthropicStream(count) {
  const message = { id: "msg_01XFDUDYJgAACzvnptvVoYEL", type: "message", role: "assistant", model: "claude-opus-4-5" };
  const usage = { input_tokens: 212, output_tokens: 1, cache_read_input_tokens: 0 };
  const deltas = Array.from({ length: count }, (_, index) =>
    anthropic("content_block_delta", {
      index: 0,
      delta: { type: "text_delta", text: ` ${words[index % words.length]} and so on, one more piece of the answer` },
    }),
  );
  return [
    anthropic("message_start", { message: { ...message, content: [], stop_reason: null, usage } }),
    anthropic("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    anthropic("ping", {}),
    ...deltas,
    anthropic("content_block_stop", { index: 0 }),
    anthropic("message_delta", {
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { output_tokens: count },
    }),
    anthropic("message_stop", {}),
  ];
}

/**
 * @typedef {object} Script
 * @property {"burst" | "paced" | "idle"} delivery
 * @property {readonly Buffer[]} events
 * @property {Buffer} body what a client must get
 * @property {Buffer} wire head and body as the provider sends them, an HTTP chunk an event
 * @property {readonly Buffer[]} pieces the same in parts: head with the first event, one part an event, the end
 */

/** @type {Map<string, Script>} */
const scripts = new Map();

/** @param {string} model @returns {Script | undefined} */
export function scriptOf(model) {
  const known = scripts.get(model);
  if (known !== undefined) return known;
  const [kind, count] = model.split(".");
  const made = make(kind ?? "", Number(count));
  if (made !== undefined) scripts.set(model, made);
  return made;
}

/** @param {string} kind @param {number} count @returns {Script | undefined} */
function make(kind, count) {
  switch (kind) {
    case "short":
      return script("burst", [...contents(SHORT_EVENTS), ...closing(SHORT_EVENTS)]);
    case "held":
      return script("burst", [role(), ...contents(SHORT_EVENTS - 1), ...closing(SHORT_EVENTS)]);
    case "anthropic":
      return script("burst", anthropicStream(SHORT_EVENTS - 3));
    case "bulk":
      return script("burst", [...contents(BULK_EVENTS), ...closing(BULK_EVENTS)]);
    case "paced":
      return script("paced", [...contents(count), ...closing(count)]);
    case "idle":
      return script("idle", [...contents(1), ...closing(1)]);
    default:
      return undefined;
  }
}

const responseHead = [
  "HTTP/1.1 200 OK",
  "Date: Sat, 29 Nov 2026 12:00:00 GMT",
  "Content-Type: text/event-stream; charset=utf-8",
  "Transfer-Encoding: chunked",
  "Connection: keep-alive",
  "openai-processing-ms: 187",
  "openai-version: 2020-10-01",
  "x-ratelimit-limit-requests: 10000",
  "x-ratelimit-remaining-requests: 9999",
  "x-ratelimit-limit-tokens: 2000000",
  "x-ratelimit-remaining-tokens: 1999788",
  "x-request-id: req_4f1d7c7a0b9e4d0f8d8c4f2b6a1e3c57",
  "CF-Cache-Status: DYNAMIC",
  "Server: cloudflare",
  "CF-RAY: 9a0f8f7b6c5d4e3f-FRA",
  'alt-svc: h3=":443"; ma=86400',
];
const head = Buffer.from(`${responseHead.join("\r\n")}\r\n\r\n`);
const last = Buffer.from("0\r\n\r\n");

/** @param {Buffer} event */
function chunked(event) {
  return Buffer.concat([Buffer.from(`${event.length.toString(16)}\r\n`), event, Buffer.from("\r\n")]);
}

/** @param {Script["delivery"]} delivery @param {readonly Buffer[]} events @returns {Script} */
function script(delivery, events) {
  const chunks = events.map(chunked);
  const [first = last, ...rest] = chunks;
  return {
    delivery,
    events,
    body: Buffer.concat(events),
    wire: Buffer.concat([head, ...chunks, last]),
    pieces: [Buffer.concat([head, first]), ...rest, last],
  };
}

/** What the first target of a fallback answers: a success that holds nothing but an error. */
export const failure = script("burst", [
  Buffer.from(
    'data: {"error":{"message":"The server had an error while processing your request","type":"server_error","param":null,"code":"server_error"}}\n\n',
  ),
]);

const system = `You are a careful assistant of a support desk. ${"Answer in one short paragraph and name the page of the manual. ".repeat(11)}`;

/**
 * A request as an SDK sends it, about 1.2 KB.
 *
 * @param {{ model: string, path: string, port: number, headers: Readonly<Record<string, string>> }} facts
 */
export function requestBytes({ model, path, port, headers }) {
  const body = JSON.stringify({
    model,
    messages: [
      { role: "system", content: system },
      { role: "user", content: "How do I reset the device when the lamp blinks twice and the display stays dark?" },
    ],
    max_tokens: 512,
    temperature: 0.2,
    stream: true,
    stream_options: { include_usage: true },
  });
  const lines = [
    `POST ${path} HTTP/1.1`,
    `Host: 127.0.0.1:${port}`,
    "Connection: keep-alive",
    "Accept: application/json",
    "Content-Type: application/json",
    "User-Agent: OpenAI/JS 6.30.0",
    "Authorization: Bearer sk-bench-0000000000000000000000000000000000000000",
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n${body}`);
}
