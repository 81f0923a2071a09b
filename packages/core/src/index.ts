// For users: a gateway and its configuration.
export {
  createGateway,
  isGateway,
  type CloseOptions,
  type Gateway,
  type GatewayDeps,
  type MatchedRoute,
} from "./gateway.js";
export type {
  ApiKey,
  CooldownConfig,
  Dispatcher,
  GateOptions,
  GatewayConfig,
  HeadersOverride,
  HealthStore,
  LimitsConfig,
  Logger,
  ProviderConfig,
  ProviderType,
  RequestContext,
  Rest,
  RetryConfig,
  Routing,
  RoutingRule,
  RuleCondition,
  SessionIdentifier,
  SignableRequest,
  SignRequest,
  SlaCutoff,
  StatusCode,
  StickyConfig,
  TargetConfig,
  Timeouts,
  VirtualModelConfig,
} from "./config.js";
export type { Identity } from "./request.js";
export type { ProtocolName as Protocol } from "./gate/protocols/protocol.js";
export { ConfigError, GatewayError, isConfigError, isGatewayError, type Failure, type FailureKind } from "./errors.js";

// For authors of an observer.
export type {
  AttemptFacts,
  ClientAbortEvent,
  CooldownEndEvent,
  CooldownStartEvent,
  GateOverflowEvent,
  ObservedAttemptRejectEvent,
  ObservedAttemptStartEvent,
  ObservedFailure,
  Observer,
  ObserverEvent,
  ReleaseEvent,
  RequestEndEvent,
  RequestFacts,
  RequestStartEvent,
  StreamEndEvent,
  StreamFailEvent,
  TokenUsage,
  TraceHeaders,
} from "./observability/observer.js";

// For users of plain node:http, and for authors of adapters.
export { createNodeHandler, type NodeHandler, type NodeHandlerOptions } from "./http/node-handler.js";
export { checkAdapterOptions, locate, type AdapterOptions, type Place } from "./http/adapter-options.js";
export { BodyPump, type BodyPumpOptions, type Drainable, type Outlet } from "./http/body-pump.js";
export { breakConnection } from "./http/break-connection.js";
export { ClientConnection, type Closable } from "./http/client-connection.js";
export type { Identify, IdentifyResult } from "./http/identify.js";
export type { ParsedSource } from "./http/read-body.js";
export { serveRequest, type Incoming, type Responder } from "./http/serve-request.js";
export type { ServedGateway } from "./http/served-gateway.js";
export {
  metricsHandler,
  renderMetrics,
  type MetricsRegistry,
  type MetricsSource,
  type RenderedMetrics,
} from "./http/metrics-handler.js";
export { ResponseOutlet } from "./http/response-outlet.js";
export { drainUnreadBody, hasUnreadBody } from "./http/unread-body.js";
export type { ClientSignal, GatewayRequest, Peer } from "./request.js";
export type {
  AttemptRejectEvent,
  AttemptStartEvent,
  BodyEnd,
  BodySink,
  CancelReason,
  FailedEvent,
  GatewayEvent,
  ReleasedBody,
  ReleasedEvent,
} from "./events.js";

// For users of the gate alone.
export { gateStream, type GateStreamOptions, type GateStreamResult } from "./gate/gate-stream.js";
export type { WebStream } from "./gate/byte-source.js";
export { systemClock, type Clock, type Timer } from "./clock.js";

// For authors of a protocol: `gateStream` takes a `GateProtocol` of your own.
export type { EventFrame, Frame, FrameDecoder } from "./gate/frame.js";
export { createAwsDecoder } from "./gate/aws-frames.js";
export { createNdjsonDecoder, createStreamDecoder } from "./gate/frames.js";
export { failureFromError, findInBandError, type InBandErrorTraits } from "./gate/in-band-error.js";
export {
  encodeSse,
  type ErrorBody,
  type GateProtocol,
  type MidStreamContext,
  type ParsedFrame,
} from "./gate/protocols/protocol.js";
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
} from "./gate/verdict.js";

// For tests of a gateway without sockets: what its `client` is. A clock for them is in `@first-chunk/core/testing`.
export type { ResponseHeaders } from "./response-headers.js";
export type { UpstreamCall, UpstreamClient, UpstreamHandler, UpstreamRequest } from "./upstream/upstream.js";
