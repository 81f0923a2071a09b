/** What a gateway records: for requests that are served, and for those that are refused before an attempt. */

import type { ResolvedConfig } from "../config/resolved.js";
import type { Failure } from "../errors.js";
import { internal } from "../gate/failures.js";
import type { ProtocolName } from "../gate/protocols/protocol.js";
import { configuredNames } from "./configured-names.js";
import { LogObserver } from "./log.js";
import { Recorder, type AcceptedRequest, type RecorderParts } from "./recorder.js";

export type RecordsConfig = Pick<ResolvedConfig, "observers" | "logger" | "models" | "rules">;

export class Records {
  readonly #parts: RecorderParts;

  constructor(config: RecordsConfig) {
    const observers =
      config.logger === undefined ? config.observers : [...config.observers, new LogObserver(config.logger)];
    // The bugs are those that a `request-end` has told already: the adapter, too, gets to see them.
    this.#parts = { observers, names: configuredNames(config), bugs: new WeakSet() };
  }

  /** Tells `request-start`. */
  begin(request: AcceptedRequest): Recorder {
    return this.#begin(request, this.#parts.names.models.has(request.requestedModel));
  }

  /** A request that is answered without an attempt: tells its start and its end. */
  refused(protocol: ProtocolName, requestId: string, failure: Failure): void {
    if (failure.kind === "internal" && this.#isTold(failure.cause)) return;
    const nobody = { rule: undefined, subject: undefined, metadata: undefined };
    const request = { requestId, protocol, streaming: false, requestedModel: "unknown", ...nobody };
    endUnserved(this.#begin(request, false), failure, 0);
  }

  /** Runs what understands a request; a bug in it is recorded and thrown on. */
  guard<T>(protocol: ProtocolName, understand: () => T): T {
    try {
      return understand();
    } catch (cause) {
      this.refused(protocol, crypto.randomUUID(), internal(cause));
      throw cause;
    }
  }

  #begin(request: AcceptedRequest, modelConfigured: boolean): Recorder {
    const recorder = new Recorder(this.#parts, request, modelConfigured);
    if (recorder.hears("request-start")) recorder.record({ type: "request-start" });
    return recorder;
  }

  #isTold(cause: unknown): boolean {
    return typeof cause === "object" && cause !== null && this.#parts.bugs.has(cause);
  }
}

/** The end of a request that no target was asked for. */
export function endUnserved(recorder: Recorder, failure: Failure, durationMs: number): void {
  const { kind, status } = failure;
  if (kind === "client-abort") recorder.record({ type: "client-abort", phase: "waiting", failure });
  const outcome = kind === "client-abort" ? "client-abort" : kind === "internal" ? "failure" : "refused";
  recorder.record({ type: "request-end", status, outcome, failure, attempts: 0, released: false, durationMs });
}
