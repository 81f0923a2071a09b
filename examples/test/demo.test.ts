import { anthropicHealthy, chatHealthy, responsesHealthy, sse, startScriptedProvider } from "@first-chunk/core/testing";
import type { ReceivedRequest, Script, ScriptedProvider } from "@first-chunk/core/testing";
import { afterEach, describe, expect, it } from "vitest";
import { Child } from "./child.js";

let provider: ScriptedProvider | undefined;
afterEach(() => provider?.close());

/** Stands for the real providers. */
async function vendor(): Promise<Record<string, string>> {
  provider = await startScriptedProvider(({ path }: ReceivedRequest): Script => {
    if (path === "/v1/messages") return sse(anthropicHealthy());
    return sse(path === "/v1/responses" ? responsesHealthy() : chatHealthy());
  });
  return {
    ANTHROPIC_API_KEY: "key-at-anthropic",
    OPENAI_API_KEY: "key-at-openai",
    ANTHROPIC_URL: provider.url,
    OPENAI_URL: `${provider.url}/v1`,
  };
}

async function demo(env: Record<string, string>, ...args: string[]): Promise<Child & { code: unknown }> {
  const child = new Child("demo/main.js", env, args);
  return Object.assign(child, { code: await child.exit });
}

describe("the demo", () => {
  it("has the expected outcome in every case, and tells it in 100 columns without colours", async () => {
    const env = await vendor();
    const { code, stdout, stderr } = await demo(env, "--short");
    expect(stderr).toBe("");
    expect(stdout).toContain("16 of 16 cases had the expected outcome");
    expect(stdout).not.toContain("\u001b[");
    expect(stdout.split("\n").filter((line) => line.length > 100)).toEqual([]);
    expect(code).toBe(0);
    // Keys in the environment are no reason to spend money.
    expect(provider?.requests).toHaveLength(0);
  }, 30_000);

  it("tells of a rejected attempt before the released one", async () => {
    const { stdout } = await demo({}, "--verbose", "--short");
    const overload = stdout.slice(stdout.indexOf("4. Overload"), stdout.indexOf("5. Overload"));
    expect(overload).toMatch(
      /sends error \(overloaded_error: Overloaded\)[^]*REJECTS attempt 1 with 503[^]*RELEASES attempt 2[^]*has the whole answer/,
    );
    expect(overload).toContain("through Koa 3\n");
  }, 30_000);

  it("asks the real providers with --live, once for each API and gateway", async () => {
    const { code, stdout } = await demo(await vendor(), "--live");
    expect(code).toBe(0);
    expect(stdout).toContain("live from anthropic/claude-haiku-4-5");
    expect(provider?.requests.map(({ path }) => path)).toEqual([
      "/v1/messages",
      "/v1/messages",
      "/v1/responses",
      "/v1/responses",
      "/v1/chat/completions",
      "/v1/chat/completions",
    ]);
    expect(stdout).not.toContain("key-at-");
  });

  it("fails when a real provider answers nothing", async () => {
    const env = await vendor();
    provider?.use(sse([]));
    const { code, stdout } = await demo(env, "--live");
    expect(stdout).toContain("upstream_empty_stream");
    expect(code).toBe(1);
  });

  it.each([
    ["--live without a key", ["--live"], "ANTHROPIC_API_KEY or OPENAI_API_KEY"],
    ["an unknown option", ["--love"], "--love"],
  ])("refuses %s", async (_name, args, message) => {
    const { code, stderr } = await demo({}, ...args);
    expect(stderr).toContain(message);
    expect(stderr).toContain("Usage: npm run demo");
    expect(code).toBe(2);
  });
});
