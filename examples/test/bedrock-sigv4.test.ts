import { createHash, createHmac } from "node:crypto";
import { chunk, end, head, startScriptedProvider } from "@first-chunk/core/testing";
import type { ReceivedRequest, ScriptedProvider } from "@first-chunk/core/testing";
import { afterEach, describe, expect, it } from "vitest";
import { Child } from "./child.js";

let provider: ScriptedProvider | undefined;
let child: Child | undefined;
afterEach(async () => {
  await child?.kill();
  await provider?.close();
});

const secret = "wJalrXUtnFEMI";
const hmac = (key: string | Buffer, text: string): Buffer => createHmac("sha256", key).update(text).digest();
const sha256 = (data: string | Buffer): string => createHash("sha256").update(data).digest("hex");

/** The signature as AWS computes it from what came. https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html */
function signatureOf({ method, path, headers, body }: ReceivedRequest): string {
  const [, scope = "", signed = ""] =
    /Credential=[^/]+\/([^,]+), SignedHeaders=([^,]+)/.exec(headers.authorization ?? "") ?? [];
  const [date = "", region = "", service = ""] = scope.split("/");
  // Every service but S3 encodes the path once more.
  const encodedPath = path.split("/").map(encodeURIComponent).join("/");
  const fields = signed.split(";").map((name) => `${name}:${String(headers[name])}\n`);
  const canonical = [method, encodedPath, "", fields.join(""), signed, sha256(body)].join("\n");
  const text = ["AWS4-HMAC-SHA256", String(headers["x-amz-date"]), scope, sha256(canonical)].join("\n");
  const key = [date, region, service, "aws4_request"].reduce<string | Buffer>(hmac, `AWS4${secret}`);
  return hmac(key, text).toString("hex");
}

describe("the Bedrock example", () => {
  it("signs what it sends, so that AWS would take it", async () => {
    provider = await startScriptedProvider([
      head(200, { "content-type": "application/json" }),
      chunk('{"output":{"message":{"role":"assistant","content":[{"text":"Hi"}]}}}'),
      end(),
    ]);
    child = new Child("bedrock-sigv4.js", {
      PORT: "0",
      AWS_REGION: "eu-central-1",
      AWS_ACCESS_KEY_ID: "AKIDEXAMPLE",
      AWS_SECRET_ACCESS_KEY: secret,
      BEDROCK_URL: provider.url,
    });
    const [, url = ""] = await child.printed(/listening on (\S+)/);
    const body = JSON.stringify({ messages: [{ role: "user", content: [{ text: "Grüße" }] }] });
    const answer = await fetch(`${url}/model/claude/converse`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body,
    });
    expect(answer.status).toBe(200);
    const received = await provider.request(0);
    expect(received.path).toBe("/model/anthropic.claude-haiku-4-5-20251001-v1%3A0/converse");
    expect(received.headers.authorization).toMatch(
      /^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE\/\d{8}\/eu-central-1\/bedrock\/aws4_request/,
    );
    expect(received.headers.authorization).toMatch(/SignedHeaders=[^,]*host;[^,]*x-amz-date/);
    expect(received.headers.authorization).toContain(`Signature=${signatureOf(received)}`);
  });

  it("says which setting is missing", async () => {
    child = new Child("bedrock-sigv4.js", { PORT: "0" });
    expect(await child.exit).toBe(2);
    expect(child.stderr).toContain("Missing: AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY");
  });
});
