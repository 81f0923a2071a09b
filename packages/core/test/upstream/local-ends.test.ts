import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { expect, it } from "vitest";
import { LocalEnds } from "../../src/upstream/local-ends.js";

const peer = { address: "127.0.0.1", port: 40_000, serverAddress: "127.0.0.1", serverPort: 8_080 };

function connection(): Socket {
  const ends = { localAddress: "127.0.0.1", localPort: 40_000, remoteAddress: "127.0.0.1", remotePort: 8_080 };
  return Object.assign(new EventEmitter(), ends) as unknown as Socket;
}

it("knows its connection from the server's side, in either form of the address, until it closes", () => {
  const ends = new LocalEnds();
  const socket = connection();
  ends.add(socket);
  expect(ends.has(peer)).toBe(true);
  expect(ends.has({ ...peer, address: "::ffff:127.0.0.1", serverAddress: "::FFFF:127.0.0.1" })).toBe(true);
  socket.emit("close");
  expect(ends.has(peer)).toBe(false);
});

it("does not take a client with the same port at another server for itself", () => {
  const ends = new LocalEnds();
  ends.add(connection());
  expect(ends.has({ ...peer, serverPort: 3_000 })).toBe(false);
});
