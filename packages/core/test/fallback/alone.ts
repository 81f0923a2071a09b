/** A request to one target that is not retried, and chunks that come slowly. */

import { data, type ScriptedCall, type Script, type Step } from "../scripted-upstream.js";
import { send, stage, type RequestOptions, type Run, type Stage } from "./serving.js";

export const noRetry: { readonly retry: { readonly attempts: number } } = { retry: { attempts: 0 } };

export interface Alone extends Stage {
  readonly scene: Stage;
  readonly run: Run;
  /** The first. */
  readonly call: ScriptedCall;
}

/** Sends a request to one target, and lets what waits for nothing happen. */
export async function alone(script: Script, config: object = noRetry, options: RequestOptions = {}): Promise<Alone> {
  const scene = stage({ targets: { a: script }, config: { ...config } });
  const run = send(scene, options);
  await scene.clock.advance(0);
  const [call] = scene.upstream.calls;
  return { ...scene, scene, run, call };
}

/** The chunk again and again, that far apart. */
export function every(ms: number, chunk: string, times: number): readonly Step[] {
  return Array.from({ length: times }, () => data(chunk, ms));
}
