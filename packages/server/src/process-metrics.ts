/**
 * Figures of the process itself, under prom-client's usual names. Its own collection watches every garbage collection, which costs an
 * idle node more than its heartbeats do.
 */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Counter, Gauge } from "prom-client";
import type { Registry } from "prom-client";

/** Milliseconds between two looks at the loop: each wakes the process up, and what sticks for longer is seen by the next one. */
const loopResolutionMs = 500;

/** What the monitor measures is the time between two looks: its own pause is no lag. `nanoseconds` is not finite before the first. */
export function lagSeconds(nanoseconds: number): number {
  return Number.isFinite(nanoseconds) ? Math.max(0, nanoseconds / 1e9 - loopResolutionMs / 1_000) : 0;
}

export function registerProcessMetrics(registry: Registry): void {
  const registers = [registry];
  const loop = monitorEventLoopDelay({ resolution: loopResolutionMs });
  loop.enable();
  const gauge = (name: string, help: string, read: () => number): void => {
    const own: Gauge = new Gauge({ name, help, registers, collect: () => own.set(read()) });
  };
  gauge("nodejs_eventloop_lag_p99_seconds", "99th percentile of the event loop's lag since the last look", () => {
    const nanoseconds = loop.percentile(99);
    loop.reset();
    return lagSeconds(nanoseconds);
  });
  gauge("process_resident_memory_bytes", "Resident memory", () => process.memoryUsage.rss());
  gauge("nodejs_heap_size_used_bytes", "Used heap", () => process.memoryUsage().heapUsed);
  gauge("process_start_time_seconds", "Start of the process, unix time", () => Date.now() / 1_000 - process.uptime());
  const cpu: Counter = new Counter({
    name: "process_cpu_seconds_total",
    help: "User and system time",
    registers,
    collect: () => {
      const { user, system } = process.cpuUsage();
      cpu.reset();
      cpu.inc((user + system) / 1e6);
    },
  });
}
