/**
 * The same events on `node:diagnostics_channel`, for APM agents: `first-chunk:request-start` and so on, a channel a type.
 * https://nodejs.org/api/diagnostics_channel.html
 */

import { channel, type Channel } from "node:diagnostics_channel";
import type { ObserverEvent } from "./observer.js";

function open(type: ObserverEvent["type"]): Channel {
  return channel(`first-chunk:${type}`);
}

export const channels: Readonly<Record<ObserverEvent["type"], Channel>> = {
  "request-start": open("request-start"),
  "attempt-start": open("attempt-start"),
  "attempt-reject": open("attempt-reject"),
  release: open("release"),
  "gate-overflow": open("gate-overflow"),
  "stream-end": open("stream-end"),
  "stream-fail": open("stream-fail"),
  "cooldown-start": open("cooldown-start"),
  "cooldown-end": open("cooldown-end"),
  "client-abort": open("client-abort"),
  "request-end": open("request-end"),
};

const all: readonly Channel[] = Object.values(channels);

export function anySubscriber(): boolean {
  return all.some(({ hasSubscribers }) => hasSubscribers);
}
