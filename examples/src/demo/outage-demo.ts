/** An outage under load, after the single cases. */

import { runDrill } from "../drill/drill.js";
import { fullDrill, shortDrill } from "../drill/plans.js";
import { drillTimeline, drillVerdict } from "../drill/report.js";
import { print, printHeading, printText, verdict } from "./terminal.js";

/**
 * @param short in a few seconds, not in twenty
 * @returns whether it went as it should
 */
export async function outageDemo(short: boolean): Promise<boolean> {
  print();
  printHeading("An outage under load");
  printText(
    "100 requests a second over three providers. The first is overloaded for a while: it rests, is probed after each rest, " +
      "and gets its traffic back.",
    3,
  );
  print();
  const result = await runDrill(short ? shortDrill : fullDrill);
  for (const line of drillTimeline(result)) print(line);
  const { ok, lines } = drillVerdict(result);
  print();
  for (const line of lines) print(`   ${line}`);
  print(`   ${verdict(ok)}`);
  return ok;
}
