/** The gate without the gateway: no Node types, and no dependency but the codec of the AWS framing. */

export { GatewayError, isGatewayError, type Failure, type FailureKind } from "../errors.js";
export type { WebStream } from "./byte-source.js";
export { gateStream, type GateStreamOptions, type GateStreamResult } from "./gate-stream.js";

// For authors of a protocol: `gateStream` takes a `GateProtocol` of your own.
export type { EventFrame, Frame, FrameDecoder } from "./frame.js";
export { createAwsDecoder } from "./aws-frames.js";
export { createNdjsonDecoder, createStreamDecoder } from "./frames.js";
export { failureFromError, findInBandError, type InBandErrorTraits } from "./in-band-error.js";
export {
  encodeSse,
  type ErrorBody,
  type GateProtocol,
  type MidStreamContext,
  type ParsedFrame,
} from "./protocols/protocol.js";
export {
  completeOutput,
  keepalive,
  lifecycle,
  malformed,
  neutral,
  output,
  type FailureVerdict,
  type LifecycleVerdict,
  type NeutralVerdict,
  type OutputVerdict,
  type TerminalVerdict,
  type Verdict,
} from "./verdict.js";
