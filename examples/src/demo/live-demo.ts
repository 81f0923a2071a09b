/** The healthy case against the real providers whose keys are set. Costs a few tokens; runs only when asked for. */

import type { GatewayConfig, ProviderConfig } from "@first-chunk/core";
import { clients } from "./clients.js";
import type { Api } from "./clients.js";
import { startGateways } from "./gateways.js";
import { run } from "./run.js";
import { print, printHeading, printTable, printTimeline, verdict } from "./terminal.js";
import type { Row } from "./terminal.js";

interface LiveCase {
  readonly api: Api;
  readonly provider: ProviderConfig;
  readonly target: string;
}

/** Which cases can be run with the keys that are set. The URLs can be replaced, e.g. by a regional one. */
export function liveCases(env: Readonly<Record<string, string | undefined>>): LiveCase[] {
  const cases: LiveCase[] = [];
  const anthropicKey = env["ANTHROPIC_API_KEY"];
  if (anthropicKey) {
    const provider = providerOf("anthropic", anthropicKey, env["ANTHROPIC_URL"]);
    cases.push({ api: "Messages", provider, target: `anthropic/${env["ANTHROPIC_MODEL"] || "claude-haiku-4-5"}` });
  }
  const openaiKey = env["OPENAI_API_KEY"];
  if (openaiKey) {
    const provider = providerOf("openai", openaiKey, env["OPENAI_URL"]);
    const target = `openai/${env["OPENAI_MODEL"] || "gpt-5-mini"}`;
    cases.push({ api: "Responses", provider, target }, { api: "Chat Completions", provider, target });
  }
  return cases;
}

function providerOf(type: "anthropic" | "openai", apiKey: string, baseUrl: string | undefined): ProviderConfig {
  return baseUrl ? { type, apiKey, baseUrl } : { type, apiKey };
}

/** @returns whether every client received text */
export async function liveDemo(cases: readonly LiveCase[]): Promise<boolean> {
  const gateways = await startGateways(configFor(cases));
  const rows: Row[] = [];
  try {
    for (const { api, target } of cases) {
      const row = { title: "Healthy stream, live", api, results: [] as Row["results"][number][], ok: true };
      for (const gateway of gateways) {
        printHeading(`${api}, client ${clients[api].name}, through ${gateway.name}, live from ${target}`);
        const result = await run(gateway, { api, model: api, timeoutMs: 60_000 });
        const { outcome } = result;
        const ok = outcome.kind === "answer" && outcome.text !== "";
        printTimeline(result.timeline);
        print(`   ${verdict(ok)}\n`);
        row.results.push(result);
        row.ok &&= ok;
      }
      rows.push(row);
    }
  } finally {
    await Promise.all(gateways.map((gateway) => gateway.close()));
  }
  printTable(
    gateways.map(({ name }) => name),
    rows,
  );
  return rows.every(({ ok }) => ok);
}

function configFor(cases: readonly LiveCase[]): GatewayConfig {
  return {
    providers: Object.fromEntries(
      cases.map(({ target, provider }) => [target.slice(0, target.indexOf("/")), provider]),
    ),
    models: Object.fromEntries(cases.map(({ api, target }) => [api, { routing: "priority", targets: [{ target }] }])),
  };
}
