/**
 * The battery that every adapter passes, over real sockets: what a host, a client and a provider see. It knows nothing of
 * how an adapter is made.
 */

import { bodyFacts } from "./body-facts.js";
import { brokenStreamFacts } from "./broken-stream-facts.js";
import { disconnectFacts } from "./disconnect-facts.js";
import { endpointFacts } from "./endpoint-facts.js";
import { fallbackFacts } from "./fallback-facts.js";
import { faultFacts } from "./fault-facts.js";
import type { AdapterHarness, ContractFramework } from "./harness.js";
import { releaseFacts } from "./release-facts.js";
import { routingFacts } from "./routing-facts.js";

/** Defines the tests. Call it at the top level of a test file, with `describe` and `it` of the test framework. */
export function adapterContract(harness: AdapterHarness, framework: ContractFramework): void {
  framework.describe(`${harness.name}: adapter contract`, () => {
    releaseFacts(harness, framework);
    fallbackFacts(harness, framework);
    routingFacts(harness, framework);
    endpointFacts(harness, framework);
    bodyFacts(harness, framework);
    disconnectFacts(harness, framework);
    brokenStreamFacts(harness, framework);
    faultFacts(harness, framework);
  });
}
