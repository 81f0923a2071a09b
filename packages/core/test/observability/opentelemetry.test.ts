import { once } from "node:events";
import { createServer, request as httpRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { context, trace } from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { afterEach, describe, expect, it } from "vitest";
import { createGateway } from "../../src/gateway.js";
import { createNodeHandler } from "../../src/http/node-handler.js";
import { openTelemetryObserver } from "../../src/observability/opentelemetry.js";
import { chatErrorFirst, chatHealthy } from "../../src/testing/chat-streams.js";
import { anthropicHealthy } from "../../src/testing/anthropic-streams.js";
import { sse } from "../../src/testing/script.js";
import { startScriptedProvider } from "../../src/testing/scripted-provider.js";
import { answer, end, stream } from "../scripted-upstream.js";
import { send, stage } from "../fallback/serving.js";
import { tracing } from "./watched.js";

const whole = stream(chatHealthy(), end());
afterEach(() => context.disable());

describe("spans", () => {
  it("are a request below the host's own span, and its attempts below that", async () => {
    const { provider, exporter } = tracing();
    const tracer = provider.getTracer("host");
    const scripted = await startScriptedProvider((_request, index) =>
      sse(index === 0 ? chatErrorFirst() : chatHealthy()),
    );
    const gateway = createGateway({
      providers: { p: { type: "openai-compatible", baseUrl: `${scripted.url}/v1` } },
      models: { m: { routing: "priority", targets: [{ target: "p/one" }, { target: "p/two" }] } },
      observers: [openTelemetryObserver({ tracer, meter: false })],
    });
    const handler = createNodeHandler(gateway);
    const server = createServer((req, res) => {
      // As an HTTP instrumentation does it.
      tracer.startActiveSpan("host", (span) => {
        res.on("close", () => span.end());
        handler(req, res);
      });
    }).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const call = httpRequest({
      port,
      method: "POST",
      path: "/v1/chat/completions",
      headers: {
        "content-type": "application/json",
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      },
    });
    call.end(JSON.stringify({ model: "m", stream: true, messages: [] }));
    const [response] = await once(call, "response");
    for await (const _ of response) continue;
    await gateway.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    await scripted.close();

    const spans = exporter.getFinishedSpans();
    const byName = (name: string) => spans.find((span) => span.name === name)!;
    const [host, own, first, second] = ["host", "first_chunk m", "chat one", "chat two"].map(byName);
    expect(spans).toHaveLength(4);
    expect(own.parentSpanContext?.spanId).toBe(host.spanContext().spanId);
    for (const [index, attempt] of [first, second].entries()) {
      const { traceId, spanId } = attempt.spanContext();
      expect(attempt.parentSpanContext?.spanId).toBe(own.spanContext().spanId);
      expect(scripted.requests[index].headers["traceparent"]).toBe(`00-${traceId}-${spanId}-01`);
      expect(attempt.attributes).toMatchObject({
        "server.address": "127.0.0.1",
        "server.port": Number(new URL(scripted.url).port),
      });
    }
  });

  it("carry the names of the conventions and the decisions of the gate", async () => {
    const { provider, exporter } = tracing();
    const observers = [openTelemetryObserver({ tracer: provider.getTracer("t"), meter: false })];
    const scene = stage({
      type: "anthropic",
      targets: {
        a: answer(529, { error: { type: "overloaded_error" } }),
        b: stream(anthropicHealthy({ model: "claude-x-1" }), end(30)),
      },
      config: { observers, retry: { attempts: 0 } },
    });
    send(scene, { api: "messages" });
    await scene.clock.advance(30);
    const [failed, good, request] = exporter.getFinishedSpans();
    expect(failed.attributes).toMatchObject({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "anthropic",
      "gen_ai.request.model": "x",
      "error.type": "overloaded_error",
      "first_chunk.failure.status": 503,
    });
    expect(failed.events.map(({ name }) => name)).toEqual(["first_chunk.reject"]);
    expect(good.attributes).toMatchObject({
      "gen_ai.response.model": "claude-x-1",
      "gen_ai.usage.input_tokens": 25,
      "gen_ai.usage.output_tokens": 15,
      "gen_ai.response.time_to_first_chunk": 0,
      "server.address": "b.test",
      "server.port": 80,
    });
    expect(good.events.map(({ name }) => name)).toEqual(["first_chunk.release"]);
    expect(request.attributes).toMatchObject({
      "gen_ai.request.model": "m",
      "first_chunk.attempts": 2,
      "first_chunk.target": "b/x",
      "first_chunk.outcome": "success",
    });
  });

  it("leave the client's trace context alone where they are not propagated, or by nobody recorded", async () => {
    const client = { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", tracestate: "a=b" };
    const { provider } = tracing();
    for (const observer of [
      openTelemetryObserver({ tracer: provider.getTracer("t"), propagate: false }),
      openTelemetryObserver({ tracer: trace.getTracer("no SDK") }),
    ]) {
      const scene = stage({ targets: { a: whole }, config: { observers: [observer] } });
      send(scene, { headers: client });
      await scene.clock.advance(0);
      expect(scene.upstream.calls[0].header("traceparent")).toBe(client.traceparent);
      expect(scene.upstream.calls[0].header("tracestate")).toBe("a=b");
    }
  });
});

it("an observer's trace context that is none is not sent", async () => {
  const observers = [
    { onEvent: () => undefined, traceHeaders: () => ({ traceparent: "x\r\ny: z" }) },
    {
      onEvent: () => undefined,
      traceHeaders: () => {
        throw new Error("mine");
      },
    },
  ];
  const scene = stage({ targets: { a: whole }, config: { observers } });
  const run = send(scene);
  await scene.clock.advance(0);
  expect(run.released?.status).toBe(200);
  expect(scene.upstream.calls[0].header("traceparent")).toBeUndefined();
});

it("the client metrics of the conventions are recorded, an attempt each", async () => {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const meters = new MeterProvider({ readers: [new PeriodicExportingMetricReader({ exporter })] });
  const observers = [openTelemetryObserver({ meter: meters.getMeter("t") })];
  const scene = stage({
    type: "anthropic",
    targets: { a: answer(500, {}), b: stream(anthropicHealthy(), end()) },
    config: { observers, retry: { attempts: 0 } },
  });
  send(scene, { api: "messages" });
  await scene.clock.advance(0);
  await meters.forceFlush();
  const points = exporter
    .getMetrics()[0]
    .scopeMetrics[0].metrics.map(({ descriptor, dataPoints }) => [descriptor.name, descriptor.unit, dataPoints.length]);
  expect(points).toEqual([
    ["gen_ai.client.operation.duration", "s", 2],
    ["gen_ai.client.operation.time_to_first_chunk", "s", 1],
    ["gen_ai.client.token.usage", "{token}", 2],
  ]);
  await meters.shutdown();
});
