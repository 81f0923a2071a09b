import { EventEmitter } from "node:events";
import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { ClientConnection } from "../../src/http/client-connection.js";
import { abortSignalOf } from "../../src/request.js";

function connected({ destroyed = false } = {}) {
  const res = Object.assign(new EventEmitter(), { destroyed, closed: false });
  const client = new ClientConnection(res as unknown as ServerResponse);
  const told: string[] = [];
  const hear = (name: string): (() => void) => {
    const listener = (): void => void told.push(name);
    client.addEventListener("abort", listener);
    return listener;
  };
  return { client, hear, leave: () => res.emit("close"), told };
}

describe("the signal of a request", () => {
  it("aborts when the client leaves, once, and tells everybody in order", () => {
    const { client, hear, leave, told } = connected();
    for (const name of ["a", "b", "c"]) hear(name);
    expect(client.aborted).toBe(false);
    leave();
    leave();
    expect(client.aborted).toBe(true);
    expect(told).toEqual(["a", "b", "c"]);
  });

  it("does not abort when the connection closes after the answer", () => {
    const { client, hear, leave, told } = connected();
    hear("a");
    client.answer();
    leave();
    expect(client.aborted).toBe(false);
    expect(told).toEqual([]);
  });

  it("does not tell those who have left", () => {
    const { client, hear, leave, told } = connected();
    const [first, , third] = [hear("a"), hear("b"), hear("c")];
    client.removeEventListener("abort", first);
    client.removeEventListener("abort", third);
    leave();
    expect(told).toEqual(["b"]);
  });

  it("tells a listener that was added twice once", () => {
    const { client, hear, leave, told } = connected();
    hear("a");
    const twice = hear("b");
    client.addEventListener("abort", twice);
    leave();
    expect(told).toEqual(["a", "b"]);
  });

  it("has aborted for a client that was gone before", () => {
    const { client } = connected({ destroyed: true });
    expect(client.aborted).toBe(true);
    expect(abortSignalOf(client).aborted).toBe(true);
  });

  it("is an AbortSignal for those who ask for one", () => {
    const { client, leave } = connected();
    const signal = abortSignalOf(client);
    expect(signal).toBeInstanceOf(AbortSignal);
    expect(abortSignalOf(client)).toBe(signal);
    leave();
    expect(signal.aborted).toBe(true);
  });
});

it("closes what is to end with the connection, once", () => {
  const { client, leave } = connected();
  let closed = 0;
  client.onClose({ close: () => (closed += 1) });
  leave();
  leave();
  expect(closed).toBe(1);
});

it("leaves a signal of the host's as it is", () => {
  const { signal } = new AbortController();
  expect(abortSignalOf(signal)).toBe(signal);
});
