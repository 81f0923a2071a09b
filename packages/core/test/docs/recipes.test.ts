import { readFileSync } from "node:fs";
import { runInThisContext } from "node:vm";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import type { GatewayConfig } from "../../src/config.js";
import { resolveConfig } from "../../src/config/resolve.js";

const text = readFileSync(new URL("../../../../docs/recipes.md", import.meta.url), "utf8");

interface Recipe {
  readonly title: string;
  readonly code: string;
}

/** The code blocks that define a `config`, under the headings they stand below. */
const recipes = text
  .split(/^## /m)
  .slice(1)
  .flatMap((section): Recipe[] => {
    const [title = ""] = section.split("\n");
    const blocks = [...section.matchAll(/```ts\n([^]*?)```/g)].map(([, code]) => code ?? "");
    return blocks.filter((code) => code.includes("const config: GatewayConfig = ")).map((code) => ({ title, code }));
  });

function configOf({ code }: Recipe): GatewayConfig {
  const { outputText } = ts.transpileModule(code, { compilerOptions: { target: ts.ScriptTarget.ES2022 } });
  const env = new Proxy({}, { get: (_target, name) => `value-of-${String(name)}` });
  const evaluate = runInThisContext(`(process) => { ${outputText}\nreturn config; }`) as (
    process: object,
  ) => GatewayConfig;
  return evaluate({ env });
}

describe("docs/recipes.md", () => {
  it("has a recipe with a configuration for each of the five uses", () => {
    expect(recipes.map(({ title }) => title)).toEqual([
      "Claude Code over two Anthropic-shaped providers",
      "The OpenAI SDK over OpenAI, Azure and a local vLLM",
      "Weights with prompt-cache affinity",
      "A key for each tenant",
      "Bring your own key",
    ]);
  });

  it.each(recipes)("has a valid configuration: $title", (recipe) => {
    const resolved = resolveConfig(configOf(recipe), {});
    expect(resolved.providers.size).toBeGreaterThan(1);
  });

  it("types each configuration", () => {
    const files = new Map(
      recipes.map(({ code }, index) => [
        `/recipes/${index}.ts`,
        `import type { GatewayConfig } from "core";\n${code}\nexport { config };`,
      ]),
    );
    expect(problems(files)).toEqual([]);
  });
});

/** What the compiler says of the files, with `core` for the sources of the package. */
function problems(files: ReadonlyMap<string, string>): string[] {
  const core = new URL("../../src/config.ts", import.meta.url).pathname;
  const options: ts.CompilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    target: ts.ScriptTarget.ES2023,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    paths: { core: [core] },
    types: ["node"],
    typeRoots: [new URL("../../../../node_modules/@types", import.meta.url).pathname],
  };
  const host = ts.createCompilerHost(options);
  const { readFile, fileExists, getSourceFile } = host;
  host.readFile = (name) => files.get(name) ?? readFile(name);
  host.fileExists = (name) => files.has(name) || fileExists(name);
  host.getSourceFile = (name, ...rest) => {
    const own = files.get(name);
    return own === undefined ? getSourceFile(name, ...rest) : ts.createSourceFile(name, own, ts.ScriptTarget.ES2023);
  };
  const program = ts.createProgram([...files.keys()], options, host);
  return [...files.keys()].flatMap((name) => {
    const source = program.getSourceFile(name);
    const found = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
    return found.map(({ messageText }) => `${name}: ${ts.flattenDiagnosticMessageText(messageText, " ")}`);
  });
}
