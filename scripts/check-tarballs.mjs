// Installs the packed packages with plain npm into an empty folder, next to each supported framework major, and loads
// every entry with `import` and with `require()`. It finds what a workspace hides: a file that is not packed, a
// dependency that is not declared, a `workspace:` range that is not rewritten. Optional peers are left out at first: all
// but their own entries must do without them.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packAll, temporaryFolder } from "./packages.mjs";
import { root, run } from "./pnpm.mjs";

const frameworks = [
  ["express@5", "koa@3"],
  ["express@4.18.2", "koa@2.13.0"],
];

/** Entries that need an optional peer, which npm does not install by itself. */
const peers = {
  "@first-chunk/core/opentelemetry": "@opentelemetry/api",
  "@first-chunk/core/prometheus": "prom-client",
};

const tarballs = packAll();
const entries = tarballs.flatMap(({ name }) => {
  const manifest = JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8"));
  return Object.keys(manifest.exports).map((entry) => manifest.name + entry.slice(1));
});

for (const versions of frameworks) {
  const folder = temporaryFolder("first-chunk-tarballs-");
  writeFileSync(join(folder, "package.json"), JSON.stringify({ private: true }));
  const sources = [...tarballs.map(({ tarball }) => tarball), ...versions];
  run("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts", ...sources], { cwd: folder, quiet: true });

  const load = { "load.mjs": "await import(entry, options)", "load.cjs": "require(entry)" };
  const loadAll = (missing) => {
    for (const [file, expression] of Object.entries(load)) {
      writeFileSync(join(folder, file), program(expression, missing));
      run(process.execPath, ["--no-warnings", file], { cwd: folder });
    }
  };
  loadAll(peers);
  run("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts", ...Object.values(peers)], {
    cwd: folder,
    quiet: true,
  });
  loadAll({});
  console.log(`ok: ${entries.length} entries by import and by require(), next to ${versions.join(" and ")}`);
}

/**
 * A program that loads every entry and fails when one does not load or has no exports. Entries whose peer is missing must
 * say so by its name, and a gateway must serve without them.
 */
function program(expression, missing) {
  return `
    const missing = ${JSON.stringify(missing)};
    async function load(entry) {
      const options = entry.endsWith(".json") ? { with: { type: "json" } } : {};
      return ${expression};
    }
    async function main() {
      for (const entry of ${JSON.stringify(entries)}) {
        const peer = missing[entry];
        const loaded = await load(entry).catch((error) => {
          if (peer === undefined || !String(error.message).includes(peer)) throw error;
          return undefined;
        });
        if (loaded === undefined) continue;
        if (peer !== undefined) throw new Error(entry + " loads although " + peer + " is not installed");
        if (Object.keys(loaded).length === 0) throw new Error(entry + " exports nothing");
      }
      await serve(await load("@first-chunk/core"), await load("@first-chunk/core/testing"));
    }
    async function serve({ createGateway }, { startScriptedProvider, sse, chatHealthy }) {
      const provider = await startScriptedProvider(sse(chatHealthy()));
      const ends = [];
      const gateway = createGateway({
        providers: { p: { type: "openai-compatible", baseUrl: provider.url + "/v1" } },
        observers: [{ onEvent: (event) => event.type === "request-end" && ends.push(event.outcome) }],
      });
      const body = Buffer.from(JSON.stringify({ model: "p/m", stream: true, messages: [] }));
      const { signal } = new AbortController();
      const request = { method: "POST", url: "/v1/chat/completions", headers: {}, body, signal };
      for await (const event of gateway.handle(request)) {
        if (event.type === "released") for await (const _ of event.body) continue;
      }
      await gateway.close();
      await provider.close();
      if (ends.join() !== "success") throw new Error("the gateway did not serve: " + ends.join());
    }
    main().catch((error) => {
      console.error(error);
      process.exitCode = 1;
    });
  `;
}
