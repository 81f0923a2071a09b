/** The protocols that come with the package, by their configured name. */

import { anthropicMessages } from "./anthropic-messages.js";
import { openaiChat } from "./openai-chat.js";
import { openaiResponses } from "./openai-responses.js";
import type { GateProtocol } from "./protocol.js";

export const protocols: ReadonlyMap<string, GateProtocol> = new Map(
  [anthropicMessages, openaiResponses, openaiChat].map((protocol) => [protocol.name, protocol]),
);
