/**
 * Bedrock with AWS credentials: Express, and the gateway signing each attempt. From the root of the repository:
 *
 *     npm run build
 *     PORT=8080 AWS_REGION=eu-central-1 AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… node examples/dist/bedrock-sigv4.js
 *
 * Then `POST /model/claude/converse-stream` streams. With a Bedrock API key, `apiKey` takes the place of `sign`.
 */

import { gatewayMiddleware } from "@first-chunk/express";
import express from "express";
import { portOf, readEnvironment } from "./environment.js";
import { serve } from "./serve.js";
import { signBedrock } from "./sign-bedrock.js";

const settings = readEnvironment("node examples/dist/bedrock-sigv4.js", {
  PORT: { meaning: "port to listen on, on 127.0.0.1; 0 = any" },
  AWS_REGION: { meaning: "region of the models" },
  AWS_ACCESS_KEY_ID: { meaning: "access key" },
  AWS_SECRET_ACCESS_KEY: { meaning: "its secret" },
  AWS_SESSION_TOKEN: { meaning: "session token of temporary credentials", fallback: "" },
  MODEL: { meaning: "the model behind `claude`", fallback: "anthropic.claude-haiku-4-5-20251001-v1:0" },
  BEDROCK_URL: { meaning: "without a path; by default the vendor's in the region", fallback: "" },
});

const sign = signBedrock(settings.AWS_REGION, {
  accessKeyId: settings.AWS_ACCESS_KEY_ID,
  secretAccessKey: settings.AWS_SECRET_ACCESS_KEY,
  ...(settings.AWS_SESSION_TOKEN === "" ? {} : { sessionToken: settings.AWS_SESSION_TOKEN }),
});

const app = express();
const gateway = gatewayMiddleware({
  providers: {
    bedrock: {
      type: "bedrock",
      baseUrl: settings.BEDROCK_URL || `https://bedrock-runtime.${settings.AWS_REGION}.amazonaws.com`,
      region: settings.AWS_REGION,
      sign,
    },
  },
  models: { claude: { routing: "priority", targets: [{ target: `bedrock/${settings.MODEL}` }] } },
});
app.use(gateway);
serve(app, gateway.gateway, portOf(settings.PORT));
