/** For tests of the gateway, of adapters, and of what is built on them. Not for production. */

export { ManualClock } from "./manual-clock.js";

export { refusedUrl, startScriptedProvider } from "./scripted-provider.js";
export type { ScriptedProvider, ScriptSource } from "./scripted-provider.js";
export type { PlayedStep, ReceivedRequest, RequestClosed } from "./exchange.js";
export { chunk, end, fin, flood, head, hold, json, noResponse, raw, reset, sse, until, wait } from "./script.js";
export type { Script, ScriptHeaders, SseOptions, Step } from "./script.js";

export { defaultText, deltasOf, sseComment, sseEvent } from "./streams.js";
export type { StreamErrorOptions, StreamOptions } from "./streams.js";
export {
  anthropicEmptyCompletion,
  anthropicEnding,
  anthropicError,
  anthropicErrorAfterPreamble,
  anthropicErrorAfterText,
  anthropicErrorFirst,
  anthropicHealthy,
  anthropicMessage,
  anthropicPreamble,
  anthropicRefusal,
  anthropicTextDeltas,
  anthropicToolCall,
  anthropicTruncatedAfterText,
  anthropicTruncatedBeforeText,
} from "./anthropic-streams.js";
export {
  responseObject,
  responsesEmptyCompletion,
  responsesErrorFirst,
  responsesErrorThenFailed,
  responsesFailedAfterCreated,
  responsesHealthy,
  responsesPreamble,
  responsesResponse,
  responsesSplitFailure,
  responsesTruncatedAfterText,
  responsesTruncatedBeforeText,
  responsesUnexplainedFailure,
} from "./responses-streams.js";
export {
  chatCompletion,
  chatEmptyCompletion,
  chatError,
  chatErrorAfterPreamble,
  chatErrorAfterText,
  chatErrorFirst,
  chatHealthy,
  chatOnlyDone,
  chatPreamble,
  chatTextDeltas,
  chatTruncatedAfterText,
  chatTruncatedBeforeText,
} from "./chat-streams.js";

export { adapterContract } from "./contract/adapter-contract.js";
export type {
  AdapterHarness,
  AdapterSetup,
  BodyParser,
  ContractFramework,
  IdentityAnswer,
  RunningApp,
} from "./contract/harness.js";
