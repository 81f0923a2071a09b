/** What the runtime reports about a connection, sorted into the kinds the rest of the gateway knows. */

export interface NetworkError {
  /** `connect-timeout`: no connection in time. `network`: everything else that is wrong with a connection. */
  readonly kind: "connect-timeout" | "network";
  /** The runtime's own code (`ECONNREFUSED`, `UND_ERR_SOCKET`, `CERT_HAS_EXPIRED`, …), for logs. */
  readonly code: string;
}

/** Several addresses that fail give an `AggregateError`; its members hold the codes. */
const maxDepth = 4;

/**
 * Sorts an error that arrived at `UpstreamHandler.onError`. Never throws, whatever it is given; an error without a code
 * is `network` with the code `UNKNOWN`.
 */
export function classifyNetworkError(error: unknown): NetworkError {
  const found = coded(error, 0);
  if (found === undefined) return { kind: "network", code: "UNKNOWN" };
  const { code, syscall } = found;
  const timedOut =
    code === "UND_ERR_CONNECT_TIMEOUT" ||
    // The kernel's own limit. The same code on an established connection (TCP keepalive) is a broken connection.
    (code === "ETIMEDOUT" && (syscall === "connect" || error instanceof AggregateError));
  return { kind: timedOut ? "connect-timeout" : "network", code };
}

interface CodedError {
  readonly code: string;
  readonly syscall: unknown;
}

function coded(error: unknown, depth: number): CodedError | undefined {
  if (typeof error !== "object" || error === null || depth > maxDepth) return undefined;
  const { code, syscall, name, errors, cause } = error as Record<string, unknown>;
  if (typeof code === "string" && code !== "") return { code, syscall };
  // undici 7 leaves out the `HPE_` code of its parser.
  if (name === "HTTPParserError") return { code: "UND_ERR_HTTP_PARSER", syscall };
  for (const inner of Array.isArray(errors) ? errors : []) {
    const found = coded(inner, depth + 1);
    if (found !== undefined) return found;
  }
  return coded(cause, depth + 1);
}
