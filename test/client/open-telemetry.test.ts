/** The client's spans and metrics in OpenTelemetry's own SDK, and beside those of the guards. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { openTelemetryFenceMetrics, prometheusFenceMetrics } from "@holdfast/fence";
import type { OpenTelemetryMeter, OpenTelemetryTracer } from "@holdfast/client";
import { driver, skipWithoutDriver } from "../fence/drivers.js";
import { TestCluster } from "../harness/cluster.js";

interface SdkSpan {
  readonly name: string;
  readonly kind: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly status: { readonly code: number };
  readonly parentSpanContext?: { readonly spanId: string };
  readonly links: readonly { readonly context: { readonly spanId: string } }[];
  spanContext(): { readonly spanId: string };
}

interface SdkMetric {
  readonly descriptor: { readonly name: string; readonly unit: string };
  readonly dataPoints: readonly { readonly attributes: Readonly<Record<string, unknown>>; readonly value: unknown }[];
}

interface Sdk {
  readonly tracer: OpenTelemetryTracer & {
    startActiveSpan<T>(name: string, body: (span: SdkSpan & { end(): void }) => T): T;
  };
  readonly meter: OpenTelemetryMeter;
  spans(): readonly SdkSpan[];
  metrics(): Promise<readonly SdkMetric[]>;
}

type Loaded = Record<string, new (...given: unknown[]) => Record<string, (...given: unknown[]) => unknown>>;

/** Of the packages of test/drivers, whose types aren't there when this is compiled. */
function startSdk(): Sdk {
  const { BasicTracerProvider, SimpleSpanProcessor, InMemorySpanExporter } = driver(
    "@opentelemetry/sdk-trace-base",
  ) as Loaded;
  const { MeterProvider, PeriodicExportingMetricReader, InMemoryMetricExporter } = driver(
    "@opentelemetry/sdk-metrics",
  ) as Loaded;
  const { AsyncLocalStorageContextManager } = driver("@opentelemetry/context-async-hooks") as Loaded;
  const { context } = driver("@opentelemetry/api") as { context: { setGlobalContextManager(manager: unknown): void } };
  context.setGlobalContextManager(new AsyncLocalStorageContextManager!()["enable"]!());
  const spanExporter = new InMemorySpanExporter!();
  const tracers = new BasicTracerProvider!({ spanProcessors: [new SimpleSpanProcessor!(spanExporter)] });
  const metricExporter = new InMemoryMetricExporter!(1);
  const reader = new PeriodicExportingMetricReader!({ exporter: metricExporter, exportIntervalMillis: 3_600_000 });
  const meters = new MeterProvider!({ readers: [reader] });
  return {
    tracer: tracers["getTracer"]!("holdfast") as Sdk["tracer"],
    meter: meters["getMeter"]!("holdfast") as OpenTelemetryMeter,
    spans: () => spanExporter["getFinishedSpans"]!() as SdkSpan[],
    metrics: async () => {
      await reader["forceFlush"]!();
      const [collected] = metricExporter["getMetrics"]!() as { scopeMetrics: { metrics: SdkMetric[] }[] }[];
      await reader["shutdown"]!();
      return collected?.scopeMetrics[0]?.metrics ?? [];
    },
  };
}

const skip = skipWithoutDriver("@opentelemetry/sdk-metrics");
let cluster: TestCluster;

before(async () => {
  if (skip === false) cluster = await TestCluster.start({ nodes: 1 });
});
after(async () => await cluster?.close());

test("spans are children of what is active, and metrics stand beside the guards' in one meter", { skip }, async () => {
  const sdk = startSdk();
  const fences = openTelemetryFenceMetrics(sdk.meter);
  fences.rejected("postgres", "documents");
  const holdfast = await cluster.connect({ tracer: sdk.tracer, meter: sdk.meter });
  let parent = "";
  await sdk.tracer.startActiveSpan("job", async (span) => {
    parent = span.spanContext().spanId;
    await (await holdfast.acquire("doc:42")).release();
    span.end();
  });
  await holdfast.acquire("other");
  await assert.rejects(holdfast.acquire("other", { waitMs: 50 }), { code: "wait_timeout" });

  const [acquire, release, job, other, failed] = sdk.spans();
  assert.deepEqual([acquire?.name, release?.name, job?.name, other?.name], ["acquire", "release", "job", "acquire"]);
  assert.equal(acquire?.kind, 2);
  assert.equal(acquire?.parentSpanContext?.spanId, parent);
  assert.equal(release?.parentSpanContext?.spanId, parent);
  assert.equal(release?.links[0]?.context.spanId, acquire?.spanContext().spanId);
  assert.equal(other?.parentSpanContext, undefined);
  assert.equal(acquire?.attributes["holdfast.lock.name"], "doc:42");
  assert.equal(acquire?.attributes["server.address"], "127.0.0.1");
  assert.equal(failed?.attributes["error.type"], "wait_timeout");
  assert.equal(failed?.status.code, 2);

  const metrics = await sdk.metrics();
  const named = new Map(metrics.map((metric) => [metric.descriptor.name, metric]));
  assert.equal(named.get("holdfast.fence.rejected")?.dataPoints[0]?.value, 1);
  const waits = named.get("holdfast.client.acquire.duration");
  assert.equal(waits?.descriptor.unit, "s");
  const counts = waits?.dataPoints.map(({ attributes, value }) => [
    attributes["holdfast.acquire.outcome"],
    (value as { count: number }).count,
    (value as { buckets: { boundaries: number[] } }).buckets.boundaries.length,
  ]);
  assert.deepEqual(counts, [
    ["granted", 2, 14],
    ["timeout", 1, 14],
  ]);
  assert.equal(named.get("holdfast.client.lock.count")?.dataPoints[0]?.value, 1);
});

test("Prometheus' texts of client and guards are one page: no name twice, each with its type", { skip }, async () => {
  const fences = prometheusFenceMetrics();
  fences.rejected("redis", "documents");
  const holdfast = await cluster.connect();
  await (await holdfast.acquire("doc:43")).release();
  const lines = (holdfast.metrics() + fences.prometheusText()).split("\n");
  assert.equal(lines.pop(), "");
  const types = lines.filter((line) => line.startsWith("# TYPE ")).map((line) => line.split(" ")[2] ?? "");
  assert.equal(new Set(types).size, types.length);
  const samples = lines.filter((line) => !line.startsWith("#"));
  assert.equal(new Set(samples.map((line) => line.slice(0, line.lastIndexOf(" ")))).size, samples.length);
  for (const sample of samples)
    assert.ok(
      types.some((name) => sample.startsWith(name)),
      sample,
    );
  for (const figure of "client_acquire_seconds client_hold_seconds client_lease_margin_seconds".split(" ")) {
    assert.ok(types.includes(`holdfast_${figure}`), figure);
  }
  for (const figure of "client_renewals_total client_losses_total fence_rejected_total".split(" ")) {
    assert.ok(types.includes(`holdfast_${figure}`), figure);
  }
});
