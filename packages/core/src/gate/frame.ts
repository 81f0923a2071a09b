/**
 * Frames: what a decoder makes of the bytes, whatever the framing.
 *
 * Decoders never hand out bytes for release: those are kept by the inspector as they came. A frame says where in the
 * stream it lies (`start`, `end`), so that every frame can be traced to its raw bytes.
 */

export type Frame =
  /** An SSE event with data, an AWS event stream message of type `event`, or one NDJSON line. */
  | EventFrame
  /** An SSE comment line, or white space before a JSON body. Counts as bytes only. */
  | { readonly kind: "comment"; readonly start: number; readonly end: number }
  /** Text outside the framing in which providers hide errors: an SSE field named `error`, bare JSON lines. */
  | {
      readonly kind: "stray";
      readonly data: string;
      /** The value of a field named `error`: an error, whatever it says. */
      readonly field?: boolean;
      readonly start: number;
      readonly end: number;
    }
  /** One complete JSON value of a body that is JSON: the whole body, or one element of a top-level array. */
  | { readonly kind: "json"; readonly data: string; readonly start: number; readonly end: number }
  /** The body is no stream and no JSON: HTML, or text that is not in the framing. */
  | { readonly kind: "foreign"; readonly start: number; readonly end: number };

export interface EventFrame {
  readonly kind: "event";
  /** SSE event name, or the `:event-type` of an AWS message. Empty where there is none. */
  readonly event: string;
  readonly data: string;
  /**
   * Set on a single `data:` line of an event that has several, when the first of them is a complete JSON value:
   * some servers end an event with one line feed. The event that ends them carries the joined data, as the SSE rules
   * say, and is not judged again.
   */
  readonly line?: boolean;
  readonly start: number;
  readonly end: number;
}

/** Bytes in, frames out. Never throws on input. Work is linear in the bytes, however they are split. */
export interface FrameDecoder {
  /** Frames that `chunk` completes, in order. The chunk is not kept: what is needed later is copied. */
  push(chunk: Uint8Array): Frame[];
  /** The stream ended: what an unterminated last event would have been, to be judged for a failure only. */
  end(): Frame[];
  /** Bytes kept of the frame that is not complete yet. Counts toward `gate.maxHeldBytes`. */
  readonly pendingBytes: number;
}
