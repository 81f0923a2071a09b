// Which folder may import which. Dependencies point one way:
//
//   errors, events, clock <- gate, plan, health, routing <- attempt <- fallback <- gateway <- http <- adapters
//
// Cycles are refused by oxlint (import/no-cycle). Type imports count here as well: a type is a dependency too.

const core = "^packages/core/src";

/** Everything in core from `attempt` upwards: what the machines and the data folders must not know. */
const drivers = `${core}/(fallback/(attempt|fallback|late-call|released-attempt|run-|target-request)|gateway|index|http/|upstream/|testing/)`;

/** @type {import("dependency-cruiser").IConfiguration} */
export default {
  forbidden: [
    {
      name: "foundation-stands-alone",
      comment:
        "errors.ts and clock.ts are part of what the gate needs, so they may import each other and nothing else.",
      severity: "error",
      from: { path: `${core}/(errors|clock)\\.ts$` },
      to: { pathNot: `${core}/(errors|clock)\\.ts$` },
    },
    {
      name: "gate-stands-alone",
      comment:
        "gate/ runs on any runtime: it may import itself, errors.ts, clock.ts and the two decoders, and nothing of Node.",
      severity: "error",
      from: { path: `${core}/gate/` },
      to: {
        pathNot: [
          `${core}/gate/`,
          `${core}/(errors|clock)\\.ts$`,
          "node_modules/(eventsource-parser|@smithy/eventstream-codec)/",
        ],
      },
    },
    {
      name: "undici-stays-upstream",
      comment:
        "Only upstream/ and testing/ import undici. Others take what they need from upstream/ or as an argument.",
      severity: "error",
      from: { path: "^(packages/[^/]+|examples)/src/", pathNot: `${core}/(upstream|testing)/` },
      to: { path: ["^undici", "node_modules/undici/"] },
    },
    {
      name: "machines-know-no-driver",
      comment: "The machines and what they are asked with do no I/O: gate, plan, health and routing import no driver.",
      severity: "error",
      from: { path: `${core}/(gate/|health/|routing/|fallback/(plan|retry-after)\\.ts$)` },
      to: { path: drivers },
    },
    {
      name: "attempts-know-no-gateway",
      comment: "An attempt, a fallback and the upstream client do not know who asked for them.",
      severity: "error",
      from: { path: `${core}/(fallback|upstream)/` },
      to: { path: `${core}/(gateway|index|http/|testing/)` },
    },
    {
      name: "gateway-knows-no-http",
      comment: "http/ is what adapters share. The gateway is handed a request and answers with events.",
      severity: "error",
      from: { path: `${core}/`, pathNot: `${core}/(http/|index\\.ts$|testing/)` },
      to: { path: `${core}/http/` },
    },
    {
      name: "nothing-ships-with-testing",
      comment: "testing/ is an entry of its own, so that test helpers are not loaded in production.",
      severity: "error",
      from: { path: `${core}/`, pathNot: `${core}/testing/` },
      to: { path: `${core}/testing/` },
    },
    {
      name: "adapters-delegate",
      comment: "An adapter imports its framework, Node, its own files and the public entry of @first-chunk/core.",
      severity: "error",
      from: { path: "^packages/(express|koa)/src/" },
      to: {
        pathNot: [
          "^packages/$1/src/",
          "^packages/core/(src|dist)/index\\.(ts|js|d\\.ts)$",
          "node_modules/(@types/)?$1/",
        ],
        dependencyTypesNot: ["core"],
      },
    },
    {
      name: "resolvable",
      comment: "An import that does not resolve escapes every other rule.",
      severity: "error",
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.test.json" },
    doNotFollow: { path: "node_modules" },
    exclude: { path: "^(packages/[^/]+|examples)/(dist|test|node_modules)/" },
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "types", "default"] },
  },
};
