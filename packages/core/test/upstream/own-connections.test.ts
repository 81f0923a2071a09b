import { once } from "node:events";
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { OwnConnections } from "../../src/upstream/own-connections.js";

async function connection(host: string): Promise<{ readonly ours: Socket; readonly theirs: Socket }> {
  const server = createServer();
  server.listen(0, host);
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const accepted = once(server, "connection");
  const ours = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [theirs] = (await accepted) as [Socket];
  if (ours.connecting) await once(ours, "connect");
  return { ours, theirs };
}

const ends = (socket: Socket) => ({
  client: `${socket.remoteAddress} ${socket.remotePort}`,
  server: `${socket.localAddress} ${socket.localPort}`,
});

it.each(["127.0.0.1", "::"])(
  "a connection of our own is known at its other end, on %s, until it closes",
  async (host) => {
    const own = new OwnConnections();
    const { ours, theirs } = await connection(host);
    const seen = ends(theirs);
    expect(own.has(seen)).toBe(false);
    own.add(ours);
    expect(own.has(seen)).toBe(true);
    ours.destroy();
    await once(ours, "close");
    expect(own.has(seen)).toBe(false);
    theirs.destroy();
  },
);

it("a connection to another server from the same local port is not ours", () => {
  const own = new OwnConnections();
  const socket = {
    localAddress: "127.0.0.1",
    localPort: 5,
    remoteAddress: "127.0.0.1",
    remotePort: 1,
    once: () => socket,
  };
  own.add(socket as unknown as Socket);
  expect(own.has({ client: "127.0.0.1 5", server: "127.0.0.1 1" })).toBe(true);
  expect(own.has({ client: "127.0.0.1 5", server: "127.0.0.1 2" })).toBe(false);
});
