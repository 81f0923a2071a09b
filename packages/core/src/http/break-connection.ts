/** Ends a response that must not look complete. */

import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Http2ServerResponse, ServerHttp2Stream } from "node:http2";
import { constants } from "node:http2";

/**
 * What was written is flushed, then the connection is destroyed: no last chunk, no end of the stream. Whoever calls this
 * also watches for a client that takes nothing (`WriteStallWatch`), since the flush waits for it.
 */
export function breakConnection(res: ServerResponse): void {
  const stream = http2StreamOf(res);
  if (stream !== undefined) {
    afterWrites(stream, () => stream.close(constants.NGHTTP2_INTERNAL_ERROR));
    return;
  }
  const { socket } = res;
  if (socket === null || socket.destroyed || typeof socket.destroySoon !== "function") {
    res.destroy();
    return;
  }
  // HTTP/1.0 ends a body by closing, so an orderly close would say that it is whole. Only a reset does not.
  if (!res.chunkedEncoding) {
    afterWrites(socket, () => resetAtOnce(socket));
    return;
  }
  socket.destroySoon();
}

/**
 * `resetAndDestroy()` ends the socket before it resets it, and a client that reads the end first takes the body for whole.
 * With the mark that it sets, `destroy()` sends the reset alone.
 */
function resetAtOnce(socket: Socket & { resetAndClosing?: boolean }): void {
  if (socket.resetAndClosing === undefined) return void socket.resetAndDestroy();
  socket.resetAndClosing = true;
  socket.destroy();
}

/** The response API over HTTP/2 has a stream, that of HTTP/1 has none. */
export function http2StreamOf(res: ServerResponse | Http2ServerResponse): ServerHttp2Stream | undefined {
  return "stream" in res ? res.stream : undefined;
}

interface Flushable {
  readonly writableLength: number;
  write(bytes: Uint8Array, callback: () => void): boolean;
}

/** Writes are done in order, so the callback of an empty one says that all before it are out. */
function afterWrites(stream: Flushable, callback: () => void): void {
  if (stream.writableLength === 0) callback();
  else stream.write(new Uint8Array(0), callback);
}
