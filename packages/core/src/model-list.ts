/** `GET /v1/models`: the virtual models, in the shape that the client's SDK parses. */

import { ReleasedAnswer } from "./answer.js";
import type { ResolvedModel } from "./config/resolved.js";
import type { ReleasedEvent } from "./events.js";
import { StreamBody } from "./fallback/stream-body.js";
import type { GatewayRequest } from "./request.js";
import type { HeaderPairs } from "./response-headers.js";

/** Nobody feeds a body that is complete. */
const nothing = { pause(): void {}, resume(): void {}, cancel(): void {}, handedOver(): void {} };

/**
 * Patterns are left out: they are no names to be called by.
 *
 * @param since when the gateway was made, epoch ms: the models exist as long as it
 */
export function modelList(
  models: readonly ResolvedModel[],
  request: GatewayRequest,
  since: number,
  own: HeaderPairs,
): ReleasedEvent {
  const names = models.filter(({ pattern }) => !pattern).map(({ name }) => name);
  const anthropic = request.headers["anthropic-version"] !== undefined;
  const body = new StreamBody(nothing, [
    Buffer.from(JSON.stringify(anthropic ? anthropicList(names, since) : openaiList(names, since))),
  ]);
  body.finish({ type: "finish" });
  return new ReleasedAnswer(200, [...own, "content-type", "application/json"], body);
}

/** https://platform.openai.com/docs/api-reference/models/list */
function openaiList(names: readonly string[], since: number): object {
  const created = Math.floor(since / 1000);
  return { object: "list", data: names.map((id) => ({ id, object: "model", created, owned_by: "first-chunk" })) };
}

/** https://platform.claude.com/docs/en/api/models-list */
function anthropicList(names: readonly string[], since: number): object {
  const created_at = new Date(since).toISOString();
  return {
    data: names.map((id) => ({ type: "model", id, display_name: id, created_at })),
    has_more: false,
    first_id: names[0] ?? null,
    last_id: names.at(-1) ?? null,
  };
}
