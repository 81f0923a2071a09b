import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseRequestTarget } from "../../src/upstream/request-target.js";

describe("a request target", () => {
  it.each([
    ["/v1/messages", "/v1/messages", ""],
    ["/v1/messages?beta=true", "/v1/messages", "beta=true"],
    ["/v1/messages?a=//b?c=../d", "/v1/messages", "a=//b?c=../d"],
    ["/v1/messages/", "/v1/messages/", ""],
    ["http://evil.example/v1/messages?x=1", "/v1/messages", "x=1"],
    ["/v1beta/models/gemini-3-pro:streamGenerateContent", "/v1beta/models/gemini-3-pro:streamGenerateContent", ""],
    ["/v1beta/models/google%2Fgemini:generateContent", "/v1beta/models/google%2Fgemini:generateContent", ""],
    ["/model/arn%3Aaws%3Aprofile%2Fus.x/converse-stream", "/model/arn%3Aaws%3Aprofile%2Fus.x/converse-stream", ""],
    ["/llm/model/bedrock%2Fm/invoke", "/llm/model/bedrock%2Fm/invoke", ""],
    ["/a.b/..c", "/a.b/..c", ""],
  ])("%s is taken apart", (target, path, query) => {
    expect(parseRequestTarget(target)).toEqual({ path, query });
  });

  it.each([
    "//evil.example/v1/messages",
    "///v1/messages",
    "/\\evil.example",
    "\\\\evil.example",
    "/v1\\messages",
    "/v1/%5cmessages",
    "/v1//messages",
    "/v1/../admin",
    "/v1/./messages",
    "/v1/%2e%2e/admin",
    "/v1/.%2E/admin",
    "/v1/..%2fadmin",
    "/v1%2fmessages",
    "/v1/responses/a%2fb",
    "/v1beta/models/..%2fx:generateContent",
    "/v1beta/models/%2e%2e%2fx:generateContent",
    "/v1beta/models/a%2f..:generateContent",
    "/v1beta/models/a%2fb%2fc:generateContent",
    "/model%2fx/m/invoke",
    "/v1/%252e%252e/admin",
    "/v1/%252fadmin",
    "/v1/%00",
    "/v1/%",
    "/v1/%zz",
    "/v1/%80",
    "/v1/a b",
    "/v1/\u00e4",
    "/v1/a\r\nb",
    "/v1/messages#x",
    "/v1/messages?a=\r\n",
    "http://evil.example",
    "http://evil.example\\@x/v1/messages",
    "http://evil.example//x",
    "ftp://evil.example/v1/messages",
    "@evil.example/v1",
    "evil.example:80",
    "*",
    "",
    "?",
  ])("%j is refused", (target) => {
    expect(parseRequestTarget(target)).toBeUndefined();
  });

  it("that is accepted is what a URL parser makes of it, on the host that was meant", () => {
    const part = fc.oneof(
      fc.constantFrom(
        "/",
        "\\",
        "..",
        ".",
        "%2f",
        "%2E",
        "%5c",
        "//",
        "@",
        ":",
        "?",
        "#",
        "models/",
        "a",
        "http://e.x",
      ),
      fc.string(),
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 8 }), (parts) => {
        const parsed = parseRequestTarget(`/${parts.join("")}`);
        if (parsed === undefined) return;
        const url = new URL(parsed.path, "http://host.example");
        expect(url.host).toBe("host.example");
        expect(decodeURI(url.pathname)).toBe(decodeURI(parsed.path));
      }),
      { numRuns: 500 },
    );
  });
});
