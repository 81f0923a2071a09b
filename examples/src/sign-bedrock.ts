/** SigV4 for a Bedrock provider, by the signer of the AWS SDK. */

import { Sha256 } from "@aws-crypto/sha256-js";
import type { SignRequest } from "@first-chunk/core";
import { SignatureV4 } from "@smithy/signature-v4";

export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

/**
 * The `sign` hook of a provider. It is asked before every attempt, so short-lived credentials may be looked up in it:
 * `fromNodeProviderChain()` of `@aws-sdk/credential-providers` fits as `credentials`.
 */
export function signBedrock(
  region: string,
  credentials: AwsCredentials | (() => Promise<AwsCredentials>),
): SignRequest {
  const signer = new SignatureV4({ service: "bedrock", region, sha256: Sha256, credentials });
  return async ({ method, url, headers, body }) => {
    const { protocol, hostname, port, host, pathname, searchParams } = new URL(url);
    const signed = await signer.sign({
      method,
      protocol,
      hostname,
      ...(port === "" ? {} : { port: Number(port) }),
      path: pathname,
      query: Object.fromEntries(searchParams),
      // The host is part of what is signed. The gateway sends it by itself.
      headers: { ...headers, host },
      body,
    });
    return signed.headers;
  };
}
