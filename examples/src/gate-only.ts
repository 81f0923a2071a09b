/**
 * The gate alone, on the body of a `fetch`: no server, no routing. Prints a Messages stream as it comes, or the failure
 * that the provider reported inside its 200. From the root of the repository:
 *
 *     npm run build && ANTHROPIC_API_KEY=… node examples/dist/gate-only.js "Say hello."
 *
 * Exit codes: 0 released and complete, 1 rejected or broken off, 2 wrong usage.
 */

import { gateStream, isGatewayError } from "@first-chunk/core";
import { readEnvironment } from "./environment.js";

const settings = readEnvironment('node examples/dist/gate-only.js "prompt"', {
  ANTHROPIC_API_KEY: { meaning: "key of the Anthropic account" },
  ANTHROPIC_URL: { meaning: "without /v1", fallback: "https://api.anthropic.com" },
  MODEL: { meaning: "the model to ask", fallback: "claude-haiku-4-5" },
  TTFT_TIMEOUT_MS: { meaning: "how long the first output may take, in ms", fallback: "30000" },
});

const request = new AbortController();
process.once("SIGINT", () => request.abort());

async function ask(prompt: string): Promise<Response> {
  return fetch(`${settings.ANTHROPIC_URL}/v1/messages`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-api-key": settings.ANTHROPIC_API_KEY,
      "anthropic-version": "2023-06-01",
    },
    body: JSON.stringify({
      model: settings.MODEL,
      max_tokens: 1024,
      stream: true,
      messages: [{ role: "user", content: prompt }],
    }),
    signal: request.signal,
  });
}

async function main(): Promise<void> {
  const response = await ask(process.argv[2] ?? "Say hello.");
  if (!response.ok || response.body === null) {
    throw new Error(`The provider answered ${response.status}: ${await response.text()}`);
  }
  // A fetch body is decoded already, which is what the gate wants.
  const result = await gateStream(response.body, {
    protocol: "anthropic-messages",
    ttftTimeoutMs: Number(settings.TTFT_TIMEOUT_MS),
    signal: request.signal,
  });
  if (result.status !== "released") throw result.error;
  for await (const bytes of result.body) process.stdout.write(bytes);
}

try {
  await main();
} catch (error) {
  if (isGatewayError(error)) {
    const { status, code, message, retryable } = error;
    console.error(`${status} ${code}: ${message} (${retryable ? "may succeed later" : "will fail again"})`);
  } else {
    console.error(error instanceof Error ? error.message : error);
  }
  process.exitCode = 1;
}
