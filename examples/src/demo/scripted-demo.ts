/** The demo proper: every case through both gateways, against scripted providers. */

import type { GatewayConfig } from "@first-chunk/core";
import { startScriptedProvider } from "@first-chunk/core/testing";
import type { ScriptedProvider } from "@first-chunk/core/testing";
import { clients } from "./clients.js";
import { startGateways } from "./gateways.js";
import type { RunningGateway } from "./gateways.js";
import { outcomeWords, sameOutcome } from "./outcome.js";
import { addProviderEntries } from "./provider-entries.js";
import { run } from "./run.js";
import type { Run } from "./run.js";
import { scenarios } from "./scenarios.js";
import type { Scenario } from "./scenarios.js";
import { print, printHeading, printTable, printText, printTimeline, verdict } from "./terminal.js";
import type { Row } from "./terminal.js";

interface Providers {
  readonly primary: ScriptedProvider;
  readonly backup: ScriptedProvider;
}

/** @returns whether every outcome was the expected one */
export async function scriptedDemo({ verbose }: { readonly verbose: boolean }): Promise<boolean> {
  const providers = { primary: await startScriptedProvider([]), backup: await startScriptedProvider([]) };
  const gateways = await startGateways(configFor(providers));
  const rows: Row[] = [];
  try {
    for (const [index, scenario] of scenarios.entries()) {
      rows.push(await show(index + 1, scenario, gateways, providers, verbose));
    }
  } finally {
    await Promise.all(gateways.map((gateway) => gateway.close()));
    await Promise.all([providers.primary.close(), providers.backup.close()]);
  }
  printTable(
    gateways.map(({ name }) => name),
    rows,
  );
  const expected = rows.filter(({ ok }) => ok).length;
  print();
  print(`${expected} of ${rows.length} cases had the expected outcome through both gateways.`);
  return expected === rows.length;
}

/** One scripted server plays an Anthropic and an OpenAI account; the other their backups. */
function configFor({ primary, backup }: Providers): GatewayConfig {
  const apiKey = "demo-key";
  return {
    providers: {
      anthropic: { type: "anthropic", baseUrl: primary.url, apiKey },
      "anthropic-2": { type: "anthropic", baseUrl: backup.url, apiKey },
      openai: { type: "openai", baseUrl: `${primary.url}/v1`, apiKey },
      "openai-2": { type: "openai", baseUrl: `${backup.url}/v1`, apiKey },
    },
    models: {
      claude: { routing: "priority", targets: [{ target: "anthropic/model-a" }, { target: "anthropic-2/model-b" }] },
      gpt: { routing: "priority", targets: [{ target: "openai/model-a" }, { target: "openai-2/model-b" }] },
    },
    // One case must not change the next: no retry of the same target, and no target rests.
    retry: { attempts: 0 },
    cooldown: false,
  };
}

async function show(
  number: number,
  scenario: Scenario,
  gateways: readonly RunningGateway[],
  providers: Providers,
  verbose: boolean,
): Promise<Row> {
  const { title, story, api, expected } = scenario;
  printHeading(`${number}. ${title}: ${api}, client ${clients[api].name}`);
  printText(story, 3);
  const runs: Run[] = [];
  for (const [index, gateway] of gateways.entries()) {
    const result = await runScenario(scenario, gateway, providers);
    runs.push(result);
    const ok = isExpected(result, scenario);
    if (index === 0 || verbose || !ok) {
      print();
      print(`   through ${gateway.name}`);
      printTimeline(result.timeline);
      print(`   ${verdict(ok)}  expected: ${outcomeWords(expected)}`);
    } else print(`   ${verdict(ok)}  through ${gateway.name} the same`);
  }
  print();
  const ok = runs.every((result) => isExpected(result, scenario));
  return { title, api, results: runs, ok };
}

async function runScenario(scenario: Scenario, gateway: RunningGateway, providers: Providers): Promise<Run> {
  const { api, ttftTimeoutMs, maxRetries } = scenario;
  const from = { primary: providers.primary.requests.length, backup: providers.backup.requests.length };
  providers.primary.use(scenario.primary);
  providers.backup.use(scenario.backup);
  const model = api === "Messages" ? "claude" : "gpt";
  const result = await run(gateway, { api, model, ttftTimeoutMs, maxRetries, timeoutMs: 10_000 });
  for (const who of ["primary", "backup"] as const) {
    await addProviderEntries(result.timeline, who, providers[who], from[who]);
  }
  return result;
}

function isExpected({ outcome, requests }: Run, { expected }: Scenario): boolean {
  return requests === 1 && sameOutcome(outcome, expected);
}
