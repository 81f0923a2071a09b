import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { afterEach, expect, it } from "vitest";
import type { ObserverEvent } from "../../src/observability/observer.js";
import { chatHealthy } from "../../src/testing/chat-streams.js";
import { answer, end, stream } from "../scripted-upstream.js";
import { send, stage } from "../fallback/serving.js";

const heard: unknown[] = [];
const listen = (event: unknown): void => void heard.push(event);
const types: readonly ObserverEvent["type"][] = [
  "request-start",
  "attempt-start",
  "attempt-reject",
  "release",
  "stream-end",
  "request-end",
];

afterEach(() => {
  heard.length = 0;
  for (const type of types) unsubscribe(`first-chunk:${type}`, listen);
});

async function play(): Promise<readonly ObserverEvent[]> {
  const scene = stage({ targets: { a: answer(500, {}), b: stream(chatHealthy(), end()) } });
  send(scene);
  await scene.clock.advance(0);
  return scene.observed;
}

it("subscribers of a diagnostics channel hear what observers are told, the very events", async () => {
  for (const type of types) subscribe(`first-chunk:${type}`, listen);
  const observed = await play();
  expect(heard.length).toBe(7);
  expect(heard).toEqual(observed);
});

it("a subscriber of one type hears that type only", async () => {
  subscribe("first-chunk:attempt-reject", listen);
  await play();
  expect(heard).toMatchObject([{ type: "attempt-reject", failure: { status: 500 } }]);
});

it("events are plain data", async () => {
  const observed = await play();
  expect(structuredClone(observed)).toEqual(observed);
  expect(JSON.parse(JSON.stringify(observed))).toEqual(observed);
});
