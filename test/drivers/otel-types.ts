// Compiled by test/fence/pg-types.test.ts: OpenTelemetry's own types fit what the client and the guards take, which don't depend on it.
import { ClientMetrics, connect } from "@holdfast/client";
import type { Holdfast } from "@holdfast/client";
import { openTelemetryFenceMetrics } from "@holdfast/fence";
import type { FenceMetrics } from "@holdfast/fence";
import { metrics, trace } from "@opentelemetry/api";
import type { Meter, Tracer } from "@opentelemetry/api";

const tracer: Tracer = trace.getTracer("holdfast");
const meter: Meter = metrics.getMeter("holdfast");

export const fences: FenceMetrics = openTelemetryFenceMetrics(meter);
export const client: Promise<Holdfast> = connect({ tracer, meter, metrics: new ClientMetrics() });
