import { expect, it } from "vitest";
import { TickBatch } from "../../src/http/tick-batch.js";

const collect = () => {
  const writes: string[] = [];
  return { writes, batch: new TickBatch((bytes) => writes.push(Buffer.from(bytes).toString())) };
};
const tick = (): Promise<void> => new Promise((resolve) => process.nextTick(resolve));

it("writes the chunks of one tick at once, at its end", async () => {
  const { writes, batch } = collect();
  for (const text of ["a", "b", "c"]) batch.add(Buffer.from(text));
  expect(writes).toEqual([]);
  await tick();
  expect(writes).toEqual(["abc"]);
});

it("hands on a chunk that came alone without copying it", async () => {
  const writes: Uint8Array[] = [];
  const batch = new TickBatch((bytes) => writes.push(bytes));
  const chunk = Buffer.from("alone");
  batch.add(chunk);
  await tick();
  expect(writes[0]).toBe(chunk);
});

it("writes once for each tick in which chunks come", async () => {
  const { writes, batch } = collect();
  batch.add(Buffer.from("a"));
  await tick();
  batch.add(Buffer.from("b"));
  await tick();
  expect(writes).toEqual(["a", "b"]);
});

it("writes nothing of what was taken", async () => {
  const { writes, batch } = collect();
  batch.add(Buffer.from("a"));
  expect(batch.bytes).toBe(1);
  expect(Buffer.from(batch.take() ?? []).toString()).toBe("a");
  await tick();
  expect(writes).toEqual([]);
  expect(batch.take()).toBeUndefined();
});
