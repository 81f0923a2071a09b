import {
  anthropicErrorAfterPreamble,
  anthropicHealthy,
  anthropicTruncatedAfterText,
  json,
  noResponse,
  reset,
  sse,
  startScriptedProvider,
} from "@first-chunk/core/testing";
import type { Script, ScriptedProvider } from "@first-chunk/core/testing";
import { afterEach, describe, expect, it } from "vitest";
import { Child } from "./child.js";

let provider: ScriptedProvider | undefined;
afterEach(() => provider?.close());

async function run(script: Script, env: Readonly<Record<string, string>> = {}): Promise<Child & { code: unknown }> {
  provider = await startScriptedProvider(script);
  const child = new Child("gate-only.js", { ANTHROPIC_API_KEY: "key", ANTHROPIC_URL: provider.url, ...env }, [
    "Hello?",
  ]);
  return Object.assign(child, { code: await child.exit });
}

describe("the gate-only example", () => {
  it("prints a healthy stream byte for byte", async () => {
    const { code, stdout } = await run(sse(anthropicHealthy()));
    expect(stdout).toBe(anthropicHealthy().join(""));
    expect(code).toBe(0);
  });

  it("prints nothing of a stream that fails after its preamble, and says why", async () => {
    const { code, stdout, stderr } = await run(sse(anthropicErrorAfterPreamble()));
    expect(stdout).toBe("");
    expect(stderr).toContain("503 overloaded_error: Overloaded (may succeed later)");
    expect(code).toBe(1);
  });

  it("gives up on a stream that stays silent", async () => {
    const script = sse(anthropicHealthy().slice(0, 1), { after: noResponse() });
    const { code, stderr } = await run(script, { TTFT_TIMEOUT_MS: "100" });
    expect(stderr).toContain("408 ttft_timeout");
    expect(code).toBe(1);
    expect((await provider?.requests[0]?.closed)?.byClient).toBe(true);
  });

  it("fails when the stream breaks after release", async () => {
    const { code, stdout } = await run(sse(anthropicTruncatedAfterText(), { after: [reset()] }));
    expect(stdout).toBe(anthropicTruncatedAfterText().join(""));
    expect(code).toBe(1);
  });

  it("shows an HTTP error", async () => {
    const { code, stderr } = await run(json(401, { type: "error", error: { message: "no such key" } }));
    expect(stderr).toContain("The provider answered 401");
    expect(stderr).toContain("no such key");
    expect(code).toBe(1);
  });

  it("asks with the key, the model and the prompt", async () => {
    await run(sse(anthropicHealthy()), { MODEL: "model-x" });
    const asked = provider?.requests[0];
    expect(asked).toMatchObject({ method: "POST", path: "/v1/messages", headers: { "x-api-key": "key" } });
    expect(JSON.parse(String(asked?.body))).toMatchObject({ model: "model-x", messages: [{ content: "Hello?" }] });
  });

  it("says what is missing, and exits with 2", async () => {
    const child = new Child("gate-only.js", {});
    expect(await child.exit).toBe(2);
    expect(child.stderr).toContain("Missing: ANTHROPIC_API_KEY");
  });
});
