import fc from "fast-check";
import { expect, it } from "vitest";
import { shutdown } from "../src/gate/failures.js";
import { OpenRequests, type OpenRequest } from "../src/open-requests.js";
import { ManualClock } from "../src/testing/manual-clock.js";

function opened(names: readonly string[]) {
  const open = new OpenRequests();
  const stopped: string[] = [];
  const requests = names.map((name): OpenRequest => ({ stop: () => void stopped.push(name) }));
  for (const request of requests) open.add(request);
  return { open, requests, stopped };
}

it("stops those that are open, whatever order the others ended in", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(), { maxLength: 20 }), (order) => {
      const names = order.map((_, index) => String(index));
      const { open, requests, stopped } = opened(names);
      const left = new Set(names);
      for (const pick of order.slice(0, order.length / 2)) {
        const index = pick % requests.length;
        open.delete(requests[index]);
        left.delete(String(index));
      }
      open.stop(shutdown());
      expect(new Set(stopped)).toEqual(left);
      expect(stopped).toHaveLength(left.size);
    }),
  );
});

it("stops every one, also when they end as they are stopped", () => {
  const open = new OpenRequests();
  const stopped: number[] = [];
  for (let index = 0; index < 5; index += 1) {
    const request: OpenRequest = {
      stop: () => {
        stopped.push(index);
        open.delete(request);
      },
    };
    open.add(request);
  }
  open.stop(shutdown());
  expect(stopped).toEqual([0, 1, 2, 3, 4]);
});

it("settles with the last that ends", async () => {
  const clock = new ManualClock();
  const { open, requests } = opened(["a", "b"]);
  let settled = false;
  const settling = open.settle(clock, 1000).then(() => (settled = true));
  open.delete(requests[0]);
  await clock.advance(0);
  expect(settled).toBe(false);
  open.delete(requests[1]);
  await settling;
  expect(clock.pending).toBe(0);
});
