/** What the runtime reports about a connection. */

/** Several addresses that fail give an `AggregateError`; its members hold the codes. */
const maxDepth = 4;

/** Whether an error at `UpstreamHandler.onError` says that no connection was made in time. Never throws. */
export function isConnectTimeout(error: unknown): boolean {
  const found = coded(error, 0);
  if (found === undefined) return false;
  if (found.code === "UND_ERR_CONNECT_TIMEOUT") return true;
  // The system's own limit. The same code on an established connection (TCP keepalive) is a broken connection.
  return found.code === "ETIMEDOUT" && (found.syscall === "connect" || error instanceof AggregateError);
}

interface CodedError {
  readonly code: string;
  readonly syscall: unknown;
}

function coded(error: unknown, depth: number): CodedError | undefined {
  if (typeof error !== "object" || error === null || depth > maxDepth) return undefined;
  const { code, syscall, errors, cause } = error as Record<string, unknown>;
  if (typeof code === "string" && code !== "") return { code, syscall };
  for (const inner of Array.isArray(errors) ? errors : []) {
    const found = coded(inner, depth + 1);
    if (found !== undefined) return found;
  }
  return coded(cause, depth + 1);
}
