import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ProtocolName } from "../../src/gate/protocols/protocol.js";
import { parseModelPath } from "../../src/routing/model-path.js";
import { matchRoute } from "../../src/routing/routes.js";
import { upstreamPath } from "../../src/upstream/path.js";

const served = new Set<ProtocolName>(["gemini", "gemini-interactions", "bedrock-invoke", "bedrock-converse", "ollama"]);

describe("a path with the model in it", () => {
  it.each([
    ["/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse", "gemini", "gemini-3-pro", true],
    ["/v1beta/models/gemini-3-pro:generateContent", "gemini", "gemini-3-pro", false],
    ["/v1beta/models/gemini-3-pro:countTokens", "gemini", "gemini-3-pro", false],
    ["/v1beta/models/google%2Fgemini-3-pro:streamGenerateContent", "gemini", "google/gemini-3-pro", true],
    ["/v1beta/models/gemini-3-pro%3AstreamGenerateContent", "gemini", "gemini-3-pro", true],
    [
      "/model/us.anthropic.claude-v1%3A0/invoke-with-response-stream",
      "bedrock-invoke",
      "us.anthropic.claude-v1:0",
      true,
    ],
    ["/model/us.anthropic.claude-v1:0/invoke", "bedrock-invoke", "us.anthropic.claude-v1:0", false],
    ["/model/aws%2Fnova/converse-stream", "bedrock-converse", "aws/nova", true],
    [
      "/model/arn%3Aaws%3Abedrock%3Aeu-west-1%3A1%3Ainference-profile%2Fx/converse",
      "bedrock-converse",
      "arn:aws:bedrock:eu-west-1:1:inference-profile/x",
      false,
    ],
  ])("%s", (url, protocol, model, streaming) => {
    expect(matchRoute("POST", url, false, served)).toMatchObject({ protocol, model, streaming });
  });

  it("needs its version, but below a mount path", () => {
    const url = "/models/m:streamGenerateContent";
    expect(matchRoute("POST", url, false, served)).toBeUndefined();
    expect(matchRoute("POST", url, true, served)).toMatchObject({
      path: "/v1beta/models/{model}:streamGenerateContent",
      model: "m",
    });
  });

  it.each([
    "/model/%2e%2e%2fadmin/converse",
    "/model/..%2Fadmin/converse",
    "/model/../converse",
    "/model/./converse",
    "/model/%2E/converse",
    "/model/a%2Fb%2Fc/converse",
    "/model/a%2F/converse",
    "/model/%2Fa/converse",
    "/model/a%2F..%2Fb/converse",
    "/model/a%5Cb/converse",
    "/model/a%00b/converse",
    "/model/a%0d%0ab/converse",
    "/model/a%zz/converse",
    "/model/a%c3/converse",
    "/model//converse",
    "/model/a%2Fconverse",
    "/model/a/converse/",
    "/model/a/converse%2Fx",
    "/model/a/delete",
    "//model/a/converse",
    "/models/a:generateContent/x",
    "/v1beta/models/:generateContent",
    "/v1beta/models/a",
    "/v1beta/v1beta/models/a:generateContent",
    "/v1beta/model/a/converse",
  ])("is not %s", (url) => {
    expect(matchRoute("POST", url, true, served)).toBeUndefined();
  });

  it("is only called with POST, and only where its API is served", () => {
    expect(matchRoute("GET", "/model/a/converse", false, served)).toBeUndefined();
    expect(matchRoute("POST", "/model/a/converse", false, new Set(["gemini"]))).toBeUndefined();
  });

  it("comes out the same at the provider", () => {
    const model = fc.string({ unit: "grapheme", minLength: 1 });
    fc.assert(
      fc.property(model, (name) => {
        const segment = encodeURIComponent(name);
        const parsed = parseModelPath(`/model/${segment}/converse`);
        if (parsed === undefined) return;
        expect(parsed.model).toBe(name);
        const path = upstreamPath(
          { type: "bedrock", basePath: "" },
          { route: "/model/{model}/converse", model: parsed.model },
        );
        expect(path).toBe(`/model/${segment}/converse`);
      }),
    );
  });
});
