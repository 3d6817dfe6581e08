import { InvalidArgumentError } from "./errors.js";

/** Counts refused tokens. The same object may serve any number of guards. */
export interface FenceMetrics {
  rejected(guard: string, resourceClass: string): void;
  /** Called when a guard of a fixed class is made, so that its counter stands at 0 before the first refusal. */
  watched?(guard: string, resourceClass: string): void;
}

export interface PrometheusFenceMetrics extends FenceMetrics {
  /** `holdfast_fence_rejected_total` in the text format, for `/metrics`. */
  prometheusText(): string;
}

/** The part of an OpenTelemetry Meter that is used; `@opentelemetry/api` is no dependency. */
export interface OpenTelemetryMeter {
  createCounter(name: string, options?: { description?: string; unit?: string }): OpenTelemetryCounter;
}

export interface OpenTelemetryCounter {
  add(value: number, attributes?: Record<string, string>): void;
}

/** Each class is a time series for good in whatever collects them: a class made of resource names would fill it. */
const classesMax = 50;
const overflowClass = "other";
const description = "Writes refused by a guard because a newer fencing token had been accepted";

/** A counter of its own, without a registry: print it beside your other metrics. */
export function prometheusFenceMetrics(): PrometheusFenceMetrics {
  const limited = classLimit();
  const counts = new Map<string, number>();
  const add = (guard: string, resourceClass: string, value: number): void => {
    const labels = `guard="${escaped(guard)}",class="${escaped(limited(resourceClass))}"`;
    counts.set(labels, (counts.get(labels) ?? 0) + value);
  };
  return {
    rejected: (guard, resourceClass) => add(guard, resourceClass, 1),
    watched: (guard, resourceClass) => add(guard, resourceClass, 0),
    prometheusText: () => {
      const name = "holdfast_fence_rejected_total";
      const lines = [...counts].map(([labels, count]) => `${name}{${labels}} ${count}`).sort();
      return [`# HELP ${name} ${description}.`, `# TYPE ${name} counter`, ...lines, ""].join("\n");
    },
  };
}

/**
 * The counter `holdfast.fence.rejected` with the attributes `holdfast.guard` and `holdfast.resource.class`.
 * @throws InvalidArgumentError naming `meter`.
 */
export function openTelemetryFenceMetrics(meter: OpenTelemetryMeter): FenceMetrics {
  if (typeof (meter as Partial<OpenTelemetryMeter> | null)?.createCounter !== "function") {
    throw new InvalidArgumentError("meter", "must have the shape of an OpenTelemetry Meter, with createCounter()");
  }
  const limited = classLimit();
  const counter = meter.createCounter("holdfast.fence.rejected", { description, unit: "{write}" });
  const add = (guard: string, resourceClass: string, value: number): void =>
    counter.add(value, { "holdfast.guard": guard, "holdfast.resource.class": limited(resourceClass) });
  return {
    rejected: (guard, resourceClass) => add(guard, resourceClass, 1),
    watched: (guard, resourceClass) => add(guard, resourceClass, 0),
  };
}

function classLimit(): (resourceClass: string) => string {
  const known = new Set<string>();
  return (resourceClass) => {
    if (known.size < classesMax) known.add(resourceClass);
    return known.has(resourceClass) ? resourceClass : overflowClass;
  };
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
