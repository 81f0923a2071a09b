/** A dispatcher that plays one exchange as a test says it: for what depends on when undici calls, to the tick. */

import type { Dispatcher } from "undici";
import { createUndiciClient } from "../../src/upstream/client.js";
import type { UpstreamCall } from "../../src/upstream/upstream.js";
import { post, Recorder } from "./recorder.js";

export interface Exchange {
  readonly recorder: Recorder;
  readonly call: UpstreamCall;
  /** Chunks of one read. Stops, as a parser does, when the reader pauses; `held` has the rest then. */
  read(...chunks: string[]): void;
  readonly held: string[];
  end(): void;
  fail(error: Error): void;
  readonly aborted: boolean;
}

/** Up to and with the head. */
export function scriptedExchange(): Exchange {
  let handler: Dispatcher.DispatchHandler = {};
  const dispatcher = {
    dispatch(_: unknown, given: Dispatcher.DispatchHandler): boolean {
      handler = given;
      return true;
    },
  };
  const recorder = new Recorder();
  const call = createUndiciClient({ dispatcher }).send(post("http://provider.test"), recorder);
  const state = { paused: false, aborted: false, held: [] as string[], ended: false };
  const controller: Dispatcher.DispatchController = {
    get paused() {
      return state.paused;
    },
    get aborted() {
      return state.aborted;
    },
    get reason() {
      return null;
    },
    pause: () => void (state.paused = true),
    resume: () => {
      state.paused = false;
      go();
    },
    abort: (reason) => {
      state.aborted = true;
      handler.onResponseError?.(controller, reason);
    },
  };
  const go = (): void => {
    while (!state.paused && !state.aborted && state.held.length > 0) {
      handler.onResponseData?.(controller, Buffer.from(state.held.shift() ?? ""));
    }
    if (state.ended && !state.paused && !state.aborted && state.held.length === 0) {
      state.ended = false;
      handler.onResponseEnd?.(controller, {});
    }
  };
  handler.onRequestStart?.(controller, {});
  handler.onResponseStart?.(controller, 200, {});
  return {
    recorder,
    call,
    held: state.held,
    get aborted() {
      return state.aborted;
    },
    read: (...chunks) => {
      state.held.push(...chunks);
      go();
    },
    end: () => {
      state.ended = true;
      go();
    },
    fail: (error) => handler.onResponseError?.(controller, error),
  };
}
