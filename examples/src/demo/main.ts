/**
 * Shows the gate at work: official clients, two gateways, and providers that misbehave.
 *
 *     npm run demo                 scripted providers on loopback, no key and no network needed
 *     npm run demo -- --verbose    the timelines of both gateways, not of one
 *     npm run demo -- --short      the outage at the end in a few seconds, not in twenty
 *     npm run demo -- --live       one healthy stream each from the real providers whose keys are set
 *
 * Exit codes: 0 every outcome was the expected one, 1 one was not, 2 wrong usage.
 */

import { parseArgs } from "node:util";
import { liveCases, liveDemo } from "./live-demo.js";
import { outageDemo } from "./outage-demo.js";
import { scriptedDemo } from "./scripted-demo.js";

const usage = `Usage: npm run demo -- [--verbose] [--short] [--live]

  --verbose  print the timeline of both gateways
  --short    play the outage at the end in a few seconds, not in twenty
  --live     ask the real providers: needs ANTHROPIC_API_KEY or OPENAI_API_KEY`;

async function main(): Promise<number> {
  const options = readOptions();
  if (options === undefined) return 2;
  if (options.help) {
    console.log(usage);
    return 0;
  }
  if (!options.live) {
    const expected = await scriptedDemo(options);
    return (await outageDemo(options.short)) && expected ? 0 : 1;
  }
  const cases = liveCases(process.env);
  if (cases.length === 0) {
    console.error(`--live needs ANTHROPIC_API_KEY or OPENAI_API_KEY\n\n${usage}`);
    return 2;
  }
  return (await liveDemo(cases)) ? 0 : 1;
}

function readOptions(): { live: boolean; verbose: boolean; short: boolean; help: boolean } | undefined {
  try {
    const { values } = parseArgs({
      options: {
        live: { type: "boolean", default: false },
        verbose: { type: "boolean", default: false },
        short: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
    return values;
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
    return undefined;
  }
}

process.exitCode = await main();
