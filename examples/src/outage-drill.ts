/**
 * An outage drill over real sockets: three providers, 100 requests a second for 20 s. The first answers from 5 s on with an
 * overload inside its stream, and heals at 12 s. No client sees a failure; traffic moves within a few failures, and comes
 * back within one rest.
 *
 *     npm run build && node examples/dist/outage-drill.js
 *
 * Exit codes: 0 it went so, 1 it did not.
 */

import { runDrill } from "./drill/drill.js";
import { fullDrill } from "./drill/plans.js";
import { drillTimeline, drillVerdict } from "./drill/report.js";

const result = await runDrill(fullDrill);
for (const line of drillTimeline(result)) console.log(line);
const { ok, lines } = drillVerdict(result);
console.log();
for (const line of lines) console.log(line);
process.exitCode = ok ? 0 : 1;
