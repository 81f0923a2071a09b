import { chatErrorFirst, chatHealthy, sse, startScriptedProvider } from "@first-chunk/core/testing";
import type { ScriptedProvider } from "@first-chunk/core/testing";
import { afterEach, expect, it } from "vitest";
import { parseMetrics } from "../../packages/core/test/observability/prometheus-text.js";
import { Child } from "./child.js";

let provider: ScriptedProvider | undefined;
let child: Child | undefined;
afterEach(async () => {
  await child?.kill();
  await provider?.close();
});

it("the example monitored.js is scraped, and tells of the failed attempt of a request that succeeded", async () => {
  provider = await startScriptedProvider((_request, index) => sse(index === 0 ? chatErrorFirst() : chatHealthy()));
  const account = {
    ANTHROPIC_API_KEY: "a",
    OPENAI_API_KEY: "o",
    ANTHROPIC_URL: provider.url,
    OPENAI_URL: `${provider.url}/v1`,
  };
  child = new Child("monitored.js", { PORT: "0", CLIENT_TOKEN: "token", ...account });
  const [, url = ""] = await child.printed(/listening on (\S+)/);
  const body = JSON.stringify({ model: "chat", stream: true, messages: [{ role: "user", content: "Hi" }] });
  const headers = { "content-type": "application/json", authorization: "Bearer token" };
  const answer = await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body });
  expect(await answer.text()).toContain("[DONE]");

  const scrape = await fetch(`${url}/metrics`);
  expect(scrape.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
  const metrics = parseMetrics(await scrape.text());
  const samples = (name: string) => metrics.get(`first_chunk_${name}`)?.samples ?? [];
  expect(samples("requests_total")).toMatchObject([
    { value: 1, labels: { model: "chat", target: "openai/gpt-5-mini", outcome: "success", status: "200" } },
  ]);
  expect(samples("attempt_failures_total")).toMatchObject([
    { value: 1, labels: { target: "openai/gpt-5.1", kind: "in-band", status: "500" } },
  ]);
  expect(samples("rescued_requests_total")).toMatchObject([{ value: 1 }]);
  expect(samples("ttft_seconds").find(({ name }) => name.endsWith("_count"))).toMatchObject({
    value: 1,
    labels: { target: "openai/gpt-5-mini" },
  });
  expect([...metrics.keys()].every((name) => name.startsWith("first_chunk_"))).toBe(true);
  expect(child.stderr).toContain('"message":"attempt rejected"');
  expect(child.stderr).not.toContain("Hi");
});
