/** The gate without the gateway: no Node types, no dependencies. */

export { GatewayError, isGatewayError, type Failure, type FailureKind } from "../errors.js";
export { gateStream, type GateStreamOptions, type GateStreamResult } from "./gate-stream.js";
