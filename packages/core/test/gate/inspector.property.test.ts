import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { GateOutput, GateRules } from "../../src/gate/gate.js";
import { Inspector } from "../../src/gate/inspector.js";
import { defaultGateOptions, gateRules, type ResolvedGateOptions } from "../../src/gate/options.js";
import { anthropicMessages } from "../../src/gate/protocols/anthropic-messages.js";
import { openaiChat } from "../../src/gate/protocols/openai-chat.js";
import { openaiResponses } from "../../src/gate/protocols/openai-responses.js";
import type { GateProtocol } from "../../src/gate/protocols/protocol.js";
import { protocols } from "../../src/gate/protocols/protocols.js";
import {
  anthropicEmptyCompletion,
  anthropicError,
  anthropicHealthy,
  chatCompletion,
  chatEmptyCompletion,
  chatHealthy,
  responsesEmptyCompletion,
  responsesHealthy,
  responsesSplitFailure,
  sseComment,
  sseEvent,
} from "../../src/testing/index.js";
import { bytesOf } from "../fixtures/healthy.js";
import { bytewise, cutAt } from "../stream-cases.js";

const anywhere = [
  sseComment("keep-alive"),
  "event: nothing\n\n",
  "event: ping\ndata: \n\n",
  "data: {\n\n",
  "plain text\n",
  "<html>\n\n",
];
/** Frames that are told apart only at a line end behind them: where that lies decides when they meet a limit. */
const odd = [
  "data: x\ndata: y\n\n",
  `data: {}\ndata: ${JSON.stringify({ error: { message: "no", code: 503 } })}\n\n`,
  'error: {"code":503}\n',
  '{\n"error": {"code": 503}\n}\n',
  JSON.stringify(chatCompletion()),
];
const pools: readonly (readonly [GateProtocol, readonly string[]])[] = [
  [
    anthropicMessages,
    [
      ...anthropicHealthy().slice(0, 5),
      ...anthropicEmptyCompletion(),
      ...anthropicEmptyCompletion({ outputTokens: 4 }),
      anthropicError(),
      anthropicError({ type: "api_error" }),
    ],
  ],
  [
    openaiChat,
    [
      ...chatHealthy().slice(0, 3),
      ...chatEmptyCompletion(),
      sseEvent({ error: { message: "no", code: 429 } }),
      sseEvent({ error: null, choices: [] }),
    ],
  ],
  [
    openaiResponses,
    [
      ...responsesHealthy().slice(0, 6),
      ...responsesSplitFailure(),
      ...responsesEmptyCompletion(),
      sseEvent({ type: "keepalive" }),
    ],
  ],
];

const options: fc.Arbitrary<Partial<ResolvedGateOptions> & { maxHeldBytes: number }> = fc.record({
  inBandErrors: fc.boolean(),
  responsesInBandErrors: fc.boolean(),
  maxHeldBytes: fc.oneof(fc.constant(4_194_304), fc.integer({ min: 20, max: 1_200 })),
  maxHeldEvents: fc.integer({ min: 1, max: 6 }),
  maxLifecycleEvents: fc.nat(4),
  onOverflow: fc.constantFrom("release", "fail"),
});
const facts = fc.record({
  ttftTimeoutMs: fc.constantFrom(undefined, 1_000),
  anotherTarget: fc.boolean(),
  answersToolResult: fc.boolean(),
  requireTerminal: fc.boolean(),
});
const stream = fc.constantFrom(...pools).chain(([protocol, pool]) =>
  fc
    .tuple(
      fc.array(fc.constantFrom(...pool, ...pool, ...anywhere, ...odd), { maxLength: 9 }),
      fc.constantFrom("\n", "\n", "\r\n", "\r"),
      fc.nat(2),
    )
    .map(([events, eol, cut]) => {
      const text = events.join("");
      return {
        name: protocol.name,
        odd: events.some((event) => odd.includes(event)),
        text: text.slice(0, text.length - cut).replaceAll("\n", eol),
      };
    }),
);

interface Fate {
  readonly decision: GateOutput | undefined;
  readonly released: string;
  readonly jsonBody: boolean;
  /** What the end led to, and what was on record then. */
  readonly end: GateOutput | undefined;
  readonly recorded: unknown;
}

function fateOf(protocol: GateProtocol, rules: GateRules, maxHeldBytes: number, pieces: readonly Uint8Array[]): Fate {
  const inspector = new Inspector(protocol, rules, maxHeldBytes);
  let decision: GateOutput | undefined;
  let bytes = 0;
  const released: Uint8Array[] = [];
  const note = (output: GateOutput): void => {
    if (output.type === "release") released.push(...inspector.takeHeld());
    if (output.type === "release" || output.type === "reject") decision = output;
  };
  for (const piece of pieces) {
    bytes += piece.length;
    const output = inspector.push(piece);
    note(output);
    if (output.type === "forward") released.push(piece);
  }
  let end: GateOutput | undefined = inspector.end();
  note(end);
  if (end.type === "release") end = inspector.end();
  // An event larger than the limit goes by unread after release, unless it comes in one piece.
  const read = decision?.type === "release" && bytes <= maxHeldBytes;
  const { recorded, jsonBody } = inspector;
  return {
    decision,
    released: Buffer.concat(released).toString("latin1"),
    jsonBody,
    end: read ? end : undefined,
    recorded: read ? recorded : undefined,
  };
}

describe("any stream", () => {
  it("is decided alike, and passed on byte for byte, however it is split", { timeout: 60_000 }, () => {
    fc.assert(
      fc.property(
        stream,
        options,
        facts,
        fc.array(fc.nat(5_000), { maxLength: 10 }),
        ({ name, text, odd: unlimited }, given, known, places) => {
          const protocol = protocols.get(name) as GateProtocol;
          const bytes = bytesOf(text);
          const maxHeldBytes = unlimited ? 4_194_304 : given.maxHeldBytes;
          const rules = gateRules(protocol, { ...defaultGateOptions, ...given }, known);
          const whole = fateOf(protocol, rules, maxHeldBytes, [bytes]);
          if (whole.decision?.type === "release") expect(whole.released).toBe(Buffer.from(bytes).toString("latin1"));
          expect(fateOf(protocol, rules, maxHeldBytes, bytewise(bytes))).toEqual(whole);
          expect(fateOf(protocol, rules, maxHeldBytes, cutAt(bytes, places))).toEqual(whole);
        },
      ),
      { numRuns: 800 },
    );
  });
});
