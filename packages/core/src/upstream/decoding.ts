/**
 * Compressed answers. Every request asks for `identity`; a provider that compresses all the same is decoded here, so that
 * the gate reads text and the client gets it.
 */

import type { Transform } from "node:stream";
import { contentDecoder, type DecoderFactory } from "./content-decoder.js";
import type { ResponseHeaders } from "../response-headers.js";
import type { UpstreamCall, UpstreamClient, UpstreamHandler, UpstreamRequest } from "./upstream.js";

/** Decoded bytes up to which the ratio does not matter: a small answer may well be all white space. */
const freeBytes = 1_048_576;
/** Decoded bytes for each compressed one, above that. Text compresses to a tenth, seldom to a fiftieth. */
const maxRatio = 200;

const undecodableBody = "ERR_FIRST_CHUNK_UNDECODABLE_BODY";

/** The bytes are not in the encoding that the header names, or they grow beyond all measure. */
export class UndecodableBody extends Error {
  override readonly name: string = "UndecodableBody";
  readonly code: typeof undecodableBody = undecodableBody;
}

export function isUndecodableBody(error: unknown): error is UndecodableBody {
  return error instanceof Error && (error as { code?: unknown }).code === undecodableBody;
}

/**
 * Decodes gzip, deflate, br, and zstd where Node has it, and drops `content-encoding`. Any other encoding, and more than
 * one, is passed on as it came, header included. A body that is cut short, no body of the encoding, or larger than the
 * ratio allows ends in `onError`; bytes after its end are dropped.
 */
export function decodingClient(client: UpstreamClient): UpstreamClient {
  return {
    send: (request, handler) => DecodingCall.send(client, request, handler),
    owns: (peer) => client.owns?.(peer) === true,
    close: () => client.close(),
  };
}

class DecodingCall implements UpstreamCall, UpstreamHandler {
  /** Undefined once nothing more may be called. */
  #handler: UpstreamHandler | undefined;
  #call: UpstreamCall | undefined;
  #create: DecoderFactory | undefined;
  #decoder: Transform | undefined;
  #received = 0;
  #decoded = 0;
  #paused = false;
  #aborted = false;
  /** The decoder takes no more for the moment. */
  #full = false;
  /** The decoder has handed out its last byte. */
  #over = false;
  /** How the network ended: waits until what came before is decoded. */
  #end: { readonly error: Error | undefined } | undefined;

  static send(client: UpstreamClient, request: UpstreamRequest, handler: UpstreamHandler): UpstreamCall {
    const call = new DecodingCall(handler);
    call.#call = client.send(request, call);
    // Handler calls may have come before there was a call to pass these on to.
    if (call.#aborted) call.#call.abort();
    else if (call.#paused) call.#call.pause();
    return call;
  }

  private constructor(handler: UpstreamHandler) {
    this.#handler = handler;
  }

  onConnected(): void {
    this.#handler?.onConnected();
  }

  onHead(status: number, headers: ResponseHeaders): void {
    this.#create = contentDecoder(headers["content-encoding"]);
    this.#handler?.onHead(status, this.#create === undefined ? headers : withoutEncoding(headers));
    if (this.#handler !== undefined) this.deliverTo(this.#handler);
  }

  /** What needs no decoding does not come here any more. */
  deliverTo(handler: UpstreamHandler): void {
    if (this.#handler === undefined) return;
    this.#handler = handler;
    if (this.#create === undefined) this.#call?.deliverTo?.(handler);
  }

  onData(chunk: Uint8Array): void {
    if (this.#create === undefined) {
      this.#handler?.onData(chunk);
      return;
    }
    if (this.#handler === undefined || this.#over || chunk.length === 0) return;
    this.#received += chunk.length;
    this.#decoder ??= this.#start(this.#create, chunk);
    // The decoder works on another thread, after this call: the chunk may be reused by then.
    if (this.#decoder.write(new Uint8Array(chunk))) return;
    this.#full = true;
    this.#call?.pause();
  }

  onEnd(): void {
    this.#endWith(undefined);
  }

  onError(error: Error): void {
    this.#endWith(error);
  }

  #endWith(error: Error | undefined): void {
    if (this.#handler === undefined || this.#end !== undefined) return;
    this.#end = { error };
    if (this.#decoder === undefined || this.#over) this.#finish(undefined);
    else this.#decoder.end();
  }

  #start(create: DecoderFactory, first: Uint8Array): Transform {
    const decoder = create(first[0] as number);
    decoder.on("data", (chunk: Buffer) => this.#onDecoded(chunk));
    decoder.on("drain", () => {
      this.#full = false;
      if (!this.#paused) this.#call?.resume();
    });
    decoder.on("end", () => {
      this.#over = true;
      if (this.#end !== undefined) this.#finish(undefined);
    });
    decoder.on("error", (error: Error) => this.#finish(error));
    if (this.#paused) decoder.pause();
    return decoder;
  }

  #onDecoded(chunk: Buffer): void {
    this.#decoded += chunk.length;
    if (this.#decoded > freeBytes && this.#decoded > this.#received * maxRatio) {
      this.#finish(new UndecodableBody("The compressed body grows beyond all measure"));
    } else {
      this.#handler?.onData(chunk);
    }
  }

  /** @param failed what the decoder says, if anything */
  #finish(failed: Error | undefined): void {
    const handler = this.#handler;
    if (handler === undefined) return;
    this.#handler = undefined;
    this.#decoder?.destroy();
    const ended = this.#end;
    if (ended === undefined) this.#call?.abort();
    // What the network says comes first: a body that it cut short cannot be decoded to its end.
    const error = ended?.error ?? (failed === undefined ? undefined : bodyError(failed, ended !== undefined));
    if (error === undefined) handler.onEnd();
    else handler.onError(error);
  }

  abort(): void {
    this.#aborted = true;
    this.#handler = undefined;
    this.#call?.abort();
    this.#decoder?.destroy();
  }

  pause(): void {
    this.#paused = true;
    this.#decoder?.pause();
    this.#call?.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#decoder?.resume();
    if (!this.#full) this.#call?.resume();
  }
}

function bodyError(failed: Error, ended: boolean): Error {
  if (isUndecodableBody(failed)) return failed;
  const isCut = ended && (failed as { code?: unknown }).code === "Z_BUF_ERROR";
  if (isCut) return new Error("The compressed body was cut short", { cause: failed });
  return new UndecodableBody("The body is not in its content encoding", { cause: failed });
}

/** `content-length` counts compressed bytes. */
function withoutEncoding(headers: ResponseHeaders): ResponseHeaders {
  const decoded: Record<string, string | readonly string[] | undefined> = Object.assign(Object.create(null), headers);
  delete decoded["content-encoding"];
  delete decoded["content-length"];
  return decoded;
}
