import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const source = (path: string): string => fileURLToPath(new URL(`./packages/${path}`, import.meta.url));

export default defineConfig({
  resolve: {
    // Tests run on the sources, so that a unit test needs no build. Exact matches: `@first-chunk/core` must not swallow
    // `@first-chunk/core/testing`.
    alias: [
      { find: /^@first-chunk\/core$/, replacement: source("core/src/index.ts") },
      { find: /^@first-chunk\/core\/gate$/, replacement: source("core/src/gate/index.ts") },
      { find: /^@first-chunk\/core\/opentelemetry$/, replacement: source("core/src/observability/opentelemetry.ts") },
      { find: /^@first-chunk\/core\/prometheus$/, replacement: source("core/src/observability/prometheus.ts") },
      { find: /^@first-chunk\/core\/testing$/, replacement: source("core/src/testing/index.ts") },
      { find: /^@first-chunk\/express$/, replacement: source("express/src/index.ts") },
      { find: /^@first-chunk\/koa$/, replacement: source("koa/src/index.ts") },
    ],
  },
  test: {
    include: ["packages/*/test/**/*.test.ts", "examples/test/**/*.test.ts"],
    // Real sockets are opened and leaks are looked for: a process per file keeps one file's handles out of the next.
    pool: "forks",
    testTimeout: 10_000,
    hookTimeout: 10_000,
    teardownTimeout: 5_000,
    restoreMocks: true,
    unstubEnvs: true,
  },
});
