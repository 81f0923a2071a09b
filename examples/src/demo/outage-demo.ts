/** A short outage under load, after the single cases. */

import { runDrill } from "../drill/drill.js";
import { shortDrill } from "../drill/plans.js";
import { drillTimeline, drillVerdict } from "../drill/report.js";
import { print, printHeading, printText, verdict } from "./terminal.js";

/** @returns whether it went as it should */
export async function outageDemo(): Promise<boolean> {
  print();
  printHeading("An outage under load");
  printText(
    "100 requests a second over three providers. The first is overloaded for a while: it rests, is probed after each rest, " +
      "and gets its traffic back. The drill of 20 s is examples/src/outage-drill.ts.",
    3,
  );
  print();
  const result = await runDrill(shortDrill);
  for (const line of drillTimeline(result)) print(line);
  const { ok, lines } = drillVerdict(result);
  print();
  for (const line of lines) print(`   ${line}`);
  print(`   ${verdict(ok)}`);
  return ok;
}
