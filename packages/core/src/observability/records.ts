/** What a gateway records: for requests that are served, and for those that are refused before an attempt. */

import type { ResolvedConfig } from "../config/resolved.js";
import type { Failure } from "../errors.js";
import { internal } from "../gate/failures.js";
import type { ProtocolName } from "../gate/protocols/protocol.js";
import { configuredNames, type ConfiguredNames } from "./configured-names.js";
import { LogObserver } from "./log.js";
import type { Observer, RequestFacts } from "./observer.js";
import { Recorder } from "./recorder.js";

export type RecordsConfig = Pick<ResolvedConfig, "observers" | "logger" | "models" | "rules">;

/** A request that was accepted. */
export interface AcceptedRequest {
  readonly requestId: string;
  readonly protocol: ProtocolName;
  readonly streaming: boolean;
  readonly requestedModel: string;
  readonly rule?: string | undefined;
  readonly subject: string | undefined;
  readonly metadata: Readonly<Record<string, string>> | undefined;
}

export class Records {
  readonly #observers: readonly Observer[];
  readonly #names: ConfiguredNames;
  /** Bugs that a `request-end` has told already. The adapter, too, gets to see them. */
  readonly #bugs = new WeakSet<object>();

  constructor(config: RecordsConfig) {
    this.#observers =
      config.logger === undefined ? config.observers : [...config.observers, new LogObserver(config.logger)];
    this.#names = configuredNames(config);
  }

  /** Tells `request-start`. */
  begin(request: AcceptedRequest): Recorder {
    return this.#begin({ ...request, modelConfigured: this.#names.models.has(request.requestedModel) });
  }

  /** A request that is answered without an attempt: tells its start and its end. */
  refused(protocol: ProtocolName, requestId: string, failure: Failure): void {
    if (failure.kind === "internal" && this.#isTold(failure.cause)) return;
    const recorder = this.#begin({
      requestId,
      protocol,
      streaming: false,
      requestedModel: "unknown",
      modelConfigured: false,
    });
    endUnserved(recorder, failure, 0);
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

  #begin(facts: Omit<RequestFacts, "at">): Recorder {
    const recorder = new Recorder({ observers: this.#observers, facts, names: this.#names, bugs: this.#bugs });
    recorder.record({ type: "request-start" });
    return recorder;
  }

  #isTold(cause: unknown): boolean {
    return typeof cause === "object" && cause !== null && this.#bugs.has(cause);
  }
}

/** The end of a request that no target was asked for. */
export function endUnserved(recorder: Recorder, failure: Failure, durationMs: number): void {
  const { kind, status } = failure;
  if (kind === "client-abort") recorder.record({ type: "client-abort", phase: "waiting", failure });
  const outcome = kind === "client-abort" ? "client-abort" : kind === "internal" ? "failure" : "refused";
  recorder.record({ type: "request-end", status, outcome, failure, attempts: 0, released: false, durationMs });
}
