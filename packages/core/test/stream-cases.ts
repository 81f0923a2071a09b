/** The recorded stream openings in fixtures/streams.jsonl, and streams made of them. */

import { readFileSync } from "node:fs";
import type { GateStreamOptions } from "../src/gate/gate-stream.js";

export interface StreamCase {
  readonly id: string;
  readonly protocol: string;
  /** Why the outcome is what it is. */
  readonly note: string;
  readonly chunks: readonly Uint8Array[];
  /** `open`: decide with the connection still open; `stall`: nothing useful comes until the deadline. */
  readonly end: "open" | "eof" | "reset" | "stall";
  readonly http: { readonly status: number; readonly content_type: string; readonly content_encoding?: string };
  readonly expected: {
    readonly action: "release" | "fail" | "wait";
    readonly status?: number;
    readonly code?: string;
    readonly retryable?: boolean;
    readonly message?: string;
  };
  /** What differs from the defaults of `gateStream`. */
  readonly options?: Partial<GateStreamOptions>;
  /** The last chunk comes again and again until the deadline. */
  readonly repeatsLastChunk: boolean;
}

interface Row extends Omit<StreamCase, "chunks" | "repeatsLastChunk"> {
  readonly frames: readonly string[];
  readonly encoding?: "base64";
  readonly also?: { readonly repeat_last_frame_until_deadline?: boolean };
}

/** @param file one case a line, in the folder of the fixtures */
export function readCases(file: string): readonly StreamCase[] {
  const lines = readFileSync(new URL(`./fixtures/${file}`, import.meta.url), "utf8").split("\n");
  return lines
    .filter((line) => line !== "")
    .map((line) => {
      const { frames, encoding, also, ...row } = JSON.parse(line) as Row;
      const chunks = frames.map((frame) => new Uint8Array(Buffer.from(frame, encoding ?? "utf8")));
      return { ...row, chunks, repeatsLastChunk: also?.repeat_last_frame_until_deadline === true };
    });
}

export const streamCases: readonly StreamCase[] = readCases("streams.jsonl");

/** An upstream that yields the chunks, then ends as told. `idle` settles when everything was taken and more is asked for. */
export class CaseSource implements AsyncIterable<Uint8Array> {
  readonly #chunks: readonly Uint8Array[];
  readonly #end: StreamCase["end"];
  readonly idle: Promise<void>;
  returned = false;
  #markIdle: () => void = () => undefined;
  #release: (() => void) | undefined;

  constructor(chunks: readonly Uint8Array[], end: StreamCase["end"]) {
    this.#chunks = chunks;
    this.#end = end;
    this.idle = new Promise((resolve) => (this.#markIdle = resolve));
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    let at = 0;
    return {
      next: async () => {
        const value = this.#chunks[at++];
        if (value !== undefined) return { done: false, value };
        if (this.#end === "eof") return { done: true, value: undefined };
        if (this.#end === "reset") throw Object.assign(new Error("socket hang up"), { code: "ECONNRESET" });
        this.#markIdle();
        await new Promise<void>((resolve) => (this.#release = resolve));
        return { done: true, value: undefined };
      },
      return: async () => {
        this.returned = true;
        this.#release?.();
        return { done: true, value: undefined };
      },
    };
  }
}

export function joined(chunks: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(chunks));
}

/** The same bytes, one at a time. */
export function bytewise(bytes: Uint8Array): Uint8Array[] {
  return Array.from(bytes, (byte) => Uint8Array.of(byte));
}

/** The same bytes, cut at the given places. */
export function cutAt(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const cuts = [...new Set(places.map((place) => place % (bytes.length + 1)))].toSorted((a, b) => a - b);
  const edges = [0, ...cuts, bytes.length];
  return edges.slice(1).map((edge, index) => bytes.slice(edges[index], edge));
}
