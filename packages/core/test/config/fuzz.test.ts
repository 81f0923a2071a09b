import * as fc from "fast-check";
import { expect, test } from "vitest";

import type { GatewayConfig } from "../../src/config.js";
import { resolveConfig } from "../../src/config/resolve.js";
import { isConfigError } from "../../src/errors.js";

const names = fc.constantFrom(
  "p",
  "m",
  "targets",
  "target",
  "type",
  "apiKey",
  "headers",
  "__proto__",
  "constructor",
  "",
);
const leaf = fc.oneof(
  fc.constantFrom<unknown>(undefined, null, Number.NaN, Symbol("s"), 1n, () => 1, new Date(0), "p/m", "p/*", "openai"),
  fc.integer(),
  fc.string(),
);
const anything = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: "medium" },
    leaf,
    fc.array(tie("value"), { maxLength: 3 }),
    fc.array(fc.tuple(names, tie("value")), { maxLength: 4 }).map((pairs) => Object.fromEntries(pairs)),
  ),
})).value;

const keys = ["providers", "models", "rules", "gate", "timeouts", "retry", "cooldown", "limits", "directModels"];

function outcome(config: unknown): unknown {
  try {
    resolveConfig(config as GatewayConfig, {});
    return undefined;
  } catch (error) {
    return error;
  }
}

test("whatever is handed in, the only error is a ConfigError", () => {
  const config = fc.oneof(anything, fc.dictionary(fc.constantFrom(...keys), anything));
  fc.assert(
    fc.property(config, (value) => {
      const error = outcome(value);

      expect(error === undefined || isConfigError(error)).toBe(true);
    }),
  );
});

test("one strange value below a good configuration is accepted or a ConfigError", () => {
  const local = { type: "openai-compatible", baseUrl: "http://127.0.0.1/v1" };
  const targetKeys = fc.constantFrom("target", "weight", "retry", "overrideParams", "headersOverride", "ttftTimeoutMs");
  fc.assert(
    fc.property(targetKeys, anything, (key, value) => {
      const target = { target: "local/a", [key]: value };
      const error = outcome({ providers: { local }, models: { m: { targets: [target] } } });

      expect(error === undefined || isConfigError(error)).toBe(true);
    }),
  );
});

test("no message shows a key or a header value, whatever else is wrong", () => {
  const secret = fc.stringMatching(/^[!-~]{12,30}$/).map((text) => `sEcReT${text}`);
  fc.assert(
    fc.property(secret, fc.constantFrom("\n", "\0", "€", ""), anything, (text, ending, value) => {
      const provider = { type: "openai", apiKey: text + ending, headers: { "x-key": text + ending }, region: value };
      const error = outcome({ providers: { p: provider, q: { type: "openai", apiKey: [text] } } });

      expect(String(error)).toContain("providers.");
      expect(String(error)).not.toContain("sEcReT");
    }),
  );
});
