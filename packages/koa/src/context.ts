/** What is used of a Koa context. Structural, so that it fits the types of Koa 2 and 3 alike. */

import type { EventEmitter } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";

export interface GatewayContext {
  readonly app: EventEmitter;
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly request: object;
  readonly method: string;
  readonly url: string;
  readonly originalUrl: string;
  readonly headerSent: boolean;
  readonly writable: boolean;
  status: number;
  body: unknown;
  set(field: string, value: string | string[]): void;
}

/** `koa-mount` takes the mount path off `ctx.url`, leaves `ctx.originalUrl`, and does not tidy up `ctx.mountPath`. */
export function isMounted(ctx: GatewayContext & { readonly mountPath?: unknown }): boolean {
  return typeof ctx.mountPath === "string" && ctx.url !== ctx.originalUrl;
}
