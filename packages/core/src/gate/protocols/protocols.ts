/** The protocols that come with the package, by their configured name. */

import { anthropicMessages } from "./anthropic-messages.js";
import { bedrockConverse } from "./bedrock-converse.js";
import { bedrockInvoke } from "./bedrock-invoke.js";
import { geminiInteractions } from "./gemini-interactions.js";
import { gemini } from "./gemini.js";
import { ollama } from "./ollama.js";
import { openaiChat } from "./openai-chat.js";
import { openaiResponses } from "./openai-responses.js";
import type { GateProtocol } from "./protocol.js";

export const protocols: ReadonlyMap<string, GateProtocol> = new Map(
  [
    anthropicMessages,
    openaiResponses,
    openaiChat,
    gemini,
    geminiInteractions,
    bedrockInvoke,
    bedrockConverse,
    ollama,
  ].map((protocol) => [protocol.name, protocol]),
);
